package derived

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// An object in step is not compared again until something changes.
func TestVerifiedObjectIsRecheckedAfterChange(t *testing.T) {
	for name, change := range map[string]func(b *reconcilerEnv, group string){
		"what is declared": func(b *reconcilerEnv, _ string) { b.join("m", "bob", "staff") },
		"what is there": func(b *reconcilerEnv, group string) {
			b.copy.recordWrite("store", group, nil, []iam.Tuple{{User: iam.UserSubject("alice"), Relation: "member", Object: group}})
		},
		"what is sure":       func(b *reconcilerEnv, group string) { b.copy.markSuspect(group) },
		"which store":        func(b *reconcilerEnv, _ string) { b.copy.dropReplica() },
		"what is registered": func(b *reconcilerEnv, _ string) { b.State.revision.Add(1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newReconcilerEnv(t)
			b.put(kinds.IAMUsers(), "alice", &iamv1alpha1.User{})
			b.put(kinds.IAMUsers(), "bob", &iamv1alpha1.User{})
			b.put(kinds.IAMGroups(), "staff", &iamv1alpha1.Group{})
			b.join("m", "alice", "staff")
			b.work()
			group := iam.GroupType + ":" + b.api[b.keyOf(kinds.IAMGroups(), "staff")].UID
			now := func() *iamSnapshot {
				n, err := b.declaredSnapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if !b.copy.hasExactlyDesired(now(), group) || !b.copy.isVerifiedAt(now(), group) {
				t.Fatal("the group is not in step")
			}
			change(b, group)
			if b.copy.isVerifiedAt(now(), group) {
				t.Error("it is taken to be in step for what was found out before")
			}
		})
	}
}

// A client may create and delete any number of bindings; nothing of deleted ones is kept.
func TestDeletedBindingsAreForgotten(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	for i := range 30 {
		p := &iamv1alpha1.PolicyBinding{Spec: iamv1alpha1.PolicyBindingSpec{
			RoleRef: iamv1alpha1.RoleReference{Name: "viewer"}, Subjects: []iamv1alpha1.Subject{b.subject(kinds.IAMUsers(), "bob")},
		}}
		p.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: "a.example", Kind: "Doc", Namespace: ns, Name: fmt.Sprint("d", i), UID: "x"}
		b.put(kinds.PolicyBindings(), "it", p)
		b.work()
		b.drop(kinds.PolicyBindings(), "it")
		b.work()
	}
	if keys := b.AffectedKeys(b.keyOf(kinds.PolicyBindings(), "it")); len(keys) > 10 {
		t.Errorf("all that had the name is looked at: %v", keys)
	}
	if asked := b.State.bindings.undrainedVersions(b.keyOf(kinds.PolicyBindings(), "it")); len(asked) > 4 {
		t.Errorf("%d that had the name do not rest", len(asked))
	}
	b.follow()
	b.ask(Key{sort: tail})
	if err := b.pass(Key{sort: tail}, true); err != nil || len(b.State.bindings.drained) > 0 {
		t.Errorf("after all was looked at some rest for ever: %v, %v", b.State.bindings.drained, err)
	}
	if kept := len(b.copy.steady) + len(b.copy.waiting) + len(b.copy.doubted) + len(b.State.taken.keys); kept > 10 {
		t.Errorf("of %d objects something is kept: %v, %v, %v, %v", kept, b.copy.steady, b.copy.waiting, b.copy.doubted, b.State.taken.keys)
	}
}

// An earlier state of a name counts while its tuples may be in OpenFGA, or are being written.
func TestUndrainedVersionsOfNameAreChecked(t *testing.T) {
	for name, there := range map[string]func(b *reconcilerEnv, grant string){
		"it is":         func(*reconcilerEnv, string) {},
		"it is doubted": func(b *reconcilerEnv, grant string) { b.copy.dropReplica(); b.copy.markSuspect(grant) },
		"it is written": func(b *reconcilerEnv, grant string) { b.copy.dropReplica(); t.Cleanup(b.copy.beginWrite(grant)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newReconcilerEnv(t)
			b.peopled()
			again := func(role string) {
				b.put(kinds.IAMRoles(), role, &iamv1alpha1.Role{})
				b.bind("it", role, b.subject(kinds.IAMUsers(), "bob"))
			}
			again("first")
			b.work()
			grant := iam.GrantObject(&iamv1alpha1.Role{ObjectMeta: metav1.ObjectMeta{UID: types.UID(b.api[b.keyOf(kinds.IAMRoles(), "first")].UID)}}, iam.RootObject("a.example/Doc"))
			for i := range 5 {
				b.drop(kinds.PolicyBindings(), "it")
				again(fmt.Sprint("other-", i))
			}
			there(b, grant)
			if keys := b.AffectedKeys(b.keyOf(kinds.PolicyBindings(), "it")); !slices.Contains(keys, Key{sort: tuples, object: grant}) {
				t.Errorf("nobody looks at %s: %v", grant, keys)
			}
		})
	}
}

// A status change, however often, causes no new comparison.
func TestStatusChangeDoesNotCauseComparison(t *testing.T) {
	b := newReconcilerEnv(t)
	b.put(kinds.IAMUsers(), "alice", &iamv1alpha1.User{})
	b.put(kinds.IAMGroups(), "staff", &iamv1alpha1.Group{})
	b.join("m", "alice", "staff")
	b.work()
	before := b.State.changeCount()
	m, _ := b.State.memberships.rows.Get(b.keyOf(kinds.GroupMemberships(), "m"))
	said := m.Value.DeepCopy()
	said.Labels, said.Status.Conditions = map[string]string{"a": "b"}, nil
	b.put(kinds.GroupMemberships(), "m", said)
	if is, _ := b.State.memberships.rows.Get(m.Key); is.ResourceVersion == m.ResourceVersion || b.State.changeCount() != before {
		t.Errorf("it is version %s and counts as change %d, want another than %s and %d", is.ResourceVersion, b.State.changeCount(), m.ResourceVersion, before)
	}
	said.Status.User = &iamv1alpha1.Member{Name: "alice", UID: "another"}
	b.put(kinds.GroupMemberships(), "m", said)
	if b.State.changeCount() == before {
		t.Error("for whom it is counts as nothing")
	}
}
