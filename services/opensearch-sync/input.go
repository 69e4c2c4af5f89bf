package opensearchsync

import (
	"context"
	"errors"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// parallel bounds how many Secrets are read, and statuses written, at a time in one pass.
const parallel = 16

// passwords are those of users, by the UIDs of their objects: for one pass.
type passwords struct {
	mu      sync.Mutex
	values  map[string]string
	trimmed map[string]bool
	missing map[string]plan.Verdict
	// refused says that one of them may not be read.
	refused bool
}

// read reads the password of every user that stays.
func (s secrets) read(ctx context.Context, users []object) (*passwords, error) {
	p := &passwords{values: map[string]string{}, trimmed: map[string]bool{}, missing: map[string]plan.Verdict{}}
	bySecret := map[string][]*opensearchv1.OpensearchUser{}
	for _, o := range users {
		if user, ok := o.value.(*opensearchv1.OpensearchUser); ok && !o.leaving() && o.obstacle == nil {
			name := user.Spec.PasswordFrom.Name
			bySecret[name] = append(bySecret[name], user)
		}
	}
	var names []string
	for name := range bySecret {
		names = append(names, name)
	}
	err := each(ctx, names, func(name string) error {
		of := bySecret[name]
		data, err := s.data(ctx, of[0].Namespace, name)
		if err != nil && !errors.Is(err, errNoSecret) && !errors.Is(err, errSecretForbidden) {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, user := range of {
			p.take(user, data, err)
		}
		return nil
	})
	return p, err
}

func (p *passwords) take(user *opensearchv1.OpensearchUser, data map[string][]byte, err error) {
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
	case !utf8.ValidString(password): // JSON has no such bytes: each would become the same character, which anybody can guess.
		verdict.Reason = "PasswordNotText"
		verdict.Message = "key " + key + " of Secret " + user.Spec.PasswordFrom.Name + " holds bytes that are no text in UTF-8: write them in base64 or hex"
	default:
		p.values[uid], p.trimmed[uid] = password, len(password) != len(value)
		return
	}
	p.missing[uid] = verdict
}

// each does something with every item, several at a time, and returns what went wrong. It ends early when ctx does.
func each[T any](ctx context.Context, items []T, do func(T) error) error {
	var group sync.WaitGroup
	room, errs := make(chan struct{}, parallel), make([]error, len(items))
	for i, item := range items {
		room <- struct{}{}
		if errs[i] = fault.Unavailable(context.Cause(ctx)); errs[i] != nil {
			break
		}
		group.Go(func() {
			defer func() { <-room }()
			errs[i] = do(item)
		})
	}
	group.Wait()
	return fault.Join(errs...)
}

// planned makes of objects what the plan for a server is made from.
func planned(objects []object, server string, p *passwords, key []byte) []plan.Object {
	var all []plan.Object
	for _, o := range objects {
		uid := string(o.value.GetUID())
		in := plan.Object{
			UID: uid, Source: o.value.GetAnnotations()[opensearchv1.SourceUIDAnnotation], Name: o.value.Entity(),
			Created: o.value.GetCreationTimestamp().Time, Leaving: o.leaving(), Gone: o.gone(), Obstacle: o.obstacle,
			Adopt: o.value.GetAnnotations()[opensearchv1.AdoptAnnotation] == "true", Existing: o.existing(server),
			Synced: meta.IsStatusConditionTrue(o.value.State().Conditions, opensearchv1.Ready), Body: plan.BodyOf(o.value),
		}
		if p != nil {
			in.Tag = plan.Tag(key, uid, p.values[uid])
			if verdict, missing := p.missing[uid]; missing {
				in.Obstacle = &verdict
			}
		}
		all = append(all, in)
	}
	return all
}

// bindings makes of objects what the plan of mappings on a server is made from.
func bindings(objects []object, server string) []plan.Binding {
	var all []plan.Binding
	for _, o := range objects {
		b, ok := o.value.(*opensearchv1.OpensearchUserRoleBinding)
		if !ok {
			continue
		}
		var recorded map[string]plan.Entries
		if o.speaksOf(server) {
			recorded = record(b.Status)
		}
		all = append(all, plan.Binding{
			UID: string(b.UID), Leaving: o.leaving(), Obstacle: o.obstacle, Roles: b.Spec.Roles, Record: recorded,
			Entries: plan.Entries{Users: b.Spec.Users, BackendRoles: b.Spec.BackendRoles, Hosts: b.Spec.Hosts, And: b.Spec.AndBackendRoles},
		})
	}
	return all
}

// record is what a status says that is, or may be, on the server. The public operator's is taken over once.
func record(s opensearchv1.OpensearchUserRoleBindingStatus) map[string]plan.Entries {
	all := map[string]plan.Entries{}
	if len(s.Provisioned) == 0 && s.ObservedGeneration == 0 {
		for _, role := range s.ProvisionedRoles {
			all[role] = plan.Entries{Users: s.ProvisionedUsers, BackendRoles: s.ProvisionedBackendRoles}
		}
	}
	for _, p := range s.Provisioned {
		all[p.Role] = plan.Entries{Users: p.Users, BackendRoles: p.BackendRoles, Hosts: p.Hosts, And: p.AndBackendRoles}
	}
	return all
}
