package opensearchsync

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// runPasswords holds the passwords of users for one run, by the UIDs of their objects.
type runPasswords struct {
	mu sync.Mutex
	// values holds the passwords that this run has read. tags holds the hashes of all.
	values map[string]string
	tags   map[string]passwordTag
	// of holds the references of these users to Secrets.
	of map[string]corev1.SecretKeySelector
	// missing holds the reason for each password that is missing.
	missing map[string]plan.Verdict
	// refused means that the API server forbids reading one of the Secrets.
	refused bool
}

// passwordTag is the keyed hash of a password. It is valid while its Secret is unchanged.
type passwordTag struct {
	from secretKeyVersion
	text string
	// trimmed means that the value in the Secret ends in a line break.
	trimmed bool
}

// secretKeyVersion names a key of a Secret in one of its versions.
type secretKeyVersion struct{ epoch, version, secret, key string }

func secretKeyVersionOf(user *opensearchv1.OpensearchUser, secret event.Change) secretKeyVersion {
	return secretKeyVersion{secret.Epoch, secret.ResourceVersion, user.Spec.PasswordFrom.Name, user.Spec.PasswordFrom.Key}
}

func newRunPasswords() *runPasswords {
	return &runPasswords{
		values: map[string]string{}, tags: map[string]passwordTag{}, of: map[string]corev1.SecretKeySelector{}, missing: map[string]plan.Verdict{},
	}
}

// readChangedPasswords returns the passwords of users that are not being deleted. It reads the Secrets that have changed, and all
// of them in a resync. Before it reads a Secret, it verifies the users that name it. If the informer does not follow a
// Secret, or reading it is forbidden, it schedules another run after r.poll.
func (r *reconciler) readChangedPasswords(ctx context.Context, p *controller.Request[Key], w syncInput) (*runPasswords, error) {
	key, err := w.to.key()
	if err != nil {
		return nil, err
	}
	before, known := w.to.tags, newRunPasswords()
	bySecret, expected := known.groupUsersBySecret(r.state.tables[plan.Users], w.objects)
	if p.Resync {
		before = nil
	}
	var unread []string
	told, allTold := map[string]event.Change{}, true
	for name, users := range bySecret {
		secret, live := r.state.secretState(p.Key.Cluster, name)
		if told[name] = secret; !live || !known.reusePasswordTags(users, before, secret) {
			unread = append(unread, name)
		}
		allTold = allTold && live
	}
	err = forEachParallel(ctx, unread, func(name string) error {
		if err := r.verifier.Verify(ctx, expected[name]...); err != nil {
			return err
		}
		secret, err := r.secrets.getSecret(ctx, p.Key.Cluster.Namespace, name)
		if err != nil && !errors.Is(err, errNoSecret) && !errors.Is(err, errSecretForbidden) {
			return err
		}
		known.mu.Lock()
		defer known.mu.Unlock()
		for _, user := range bySecret[name] {
			if trimmed, ok := known.storePassword(user, secret.Data, err); ok {
				from := secretKeyVersionOf(user, told[name]) // A later version is another source, so the next run reads it.
				known.tags[string(user.UID)] = passwordTag{from, plan.PasswordTag(key, string(user.UID), known.values[string(user.UID)]), trimmed}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if w.to.tags = known.tags; !allTold || known.refused {
		p.RequeueAfter(r.poll)
	}
	return known, nil
}

// userNeedingPassword returns the user of an object that needs a password, or nil: the object is not being deleted and
// has no obstacle.
func (o declaredObject) userNeedingPassword() *opensearchv1.OpensearchUser {
	user, ok := o.value.(*opensearchv1.OpensearchUser)
	if !ok || o.isDeleting() || o.obstacle != nil {
		return nil
	}
	return user
}

// groupUsersBySecret stores the references of the users that need a password. It returns these users, and their expected states,
// by the names of their Secrets.
func (p *runPasswords) groupUsersBySecret(in groupTables, objects []declaredObject) (bySecret map[string][]*opensearchv1.OpensearchUser,
	expected map[string][]verify.ExpectedState,
) {
	bySecret, expected = map[string][]*opensearchv1.OpensearchUser{}, map[string][]verify.ExpectedState{}
	for _, o := range objects {
		if user := o.userNeedingPassword(); user != nil {
			from := user.Spec.PasswordFrom
			bySecret[from.Name] = append(bySecret[from.Name], user)
			expected[from.Name] = append(expected[from.Name], in.expectedObject(o))
			p.of[string(user.UID)] = from
		}
	}
	return bySecret, expected
}

// coversObjects reports whether the passwords cover these objects with their present references.
func (p *runPasswords) coversObjects(objects []declaredObject) bool {
	return !slices.ContainsFunc(objects, func(o declaredObject) bool {
		user := o.userNeedingPassword()
		return user != nil && p.of[string(user.UID)] != user.Spec.PasswordFrom
	})
}

// reusePasswordTags reuses the tags of all users of one Secret. It reports false if one of them is missing or the
// Secret has changed.
func (p *runPasswords) reusePasswordTags(users []*opensearchv1.OpensearchUser, before map[string]passwordTag, secret event.Change) bool {
	for _, user := range users {
		if has, ok := before[string(user.UID)]; !ok || has.from != secretKeyVersionOf(user, secret) {
			return false
		}
	}
	for _, user := range users {
		p.tags[string(user.UID)] = before[string(user.UID)]
	}
	return true
}

// storePassword stores the password of a user from the data of a Secret, or the verdict why it is missing. trimmed reports
// whether the value ended in a line break.
func (p *runPasswords) storePassword(user *opensearchv1.OpensearchUser, data map[string][]byte, err error) (trimmed, ok bool) {
	uid, key := string(user.UID), user.Spec.PasswordFrom.Key
	verdict := plan.Verdict{State: opensearchv1.Pending}
	value, there := data[key]
	password := strings.TrimRight(string(value), "\r\n")
	switch {
	case errors.Is(err, errSecretForbidden):
		verdict.Reason, verdict.Message = "SecretForbidden", err.Error()
		p.refused = true
	case err != nil:
		verdict.Reason, verdict.Message = "SecretMissing", err.Error()
	case !there:
		verdict.Reason, verdict.Message = "KeyMissing", "key "+key+" does not exist in Secret "+user.Spec.PasswordFrom.Name
	case password == "":
		verdict.Reason, verdict.Message = "PasswordEmpty", "key "+key+" of Secret "+user.Spec.PasswordFrom.Name+" holds no password"
	case !utf8.ValidString(password): // JSON replaces each invalid byte by the same character, which makes passwords guessable.
		verdict.Reason = "PasswordNotText"
		verdict.Message = "key " + key + " of Secret " + user.Spec.PasswordFrom.Name + " holds bytes that are not UTF-8 text: write them in base64 or hex"
	default:
		p.values[uid] = password
		return len(password) != len(value), true
	}
	p.missing[uid] = verdict
	return false, false
}

// needsUnreadPassword reports whether an action needs a password that this run has not read.
func (p *runPasswords) needsUnreadPassword(actions []plan.Action) bool {
	return slices.ContainsFunc(actions, func(a plan.Action) bool {
		_, read := p.values[a.For[0]]
		return a.Password && !read
	})
}
