package derived

import (
	"slices"
	"testing"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// has reports whether a user is in a group, by OpenFGA.
func (b *reconcilerEnv) has(group, user string) bool {
	return slices.Contains(b.openFGA.holds(), iam.GroupType+":"+b.api[b.keyOf(kinds.IAMGroups(), group)].UID+"#member@"+iam.UserSubject(user))
}

// What a membership says can change, also after everything else has come, and after another replica took over.
func TestEditedMembershipDoesNotLeaveTuples(t *testing.T) {
	for name, again := range map[string]func(*reconcilerEnv){"by who has seen it all": func(*reconcilerEnv) {}, "by who has just begun": (*reconcilerEnv).open} {
		t.Run(name, func(t *testing.T) {
			b := newReconcilerEnv(t)
			b.put(kinds.IAMUsers(), "alice", &iamv1alpha1.User{})
			b.put(kinds.IAMUsers(), "bob", &iamv1alpha1.User{})
			b.join("m", "alice", "later")
			b.work()
			b.put(kinds.IAMGroups(), "later", &iamv1alpha1.Group{})
			b.work()
			if !b.has("later", "alice") {
				t.Fatal("alice is no member")
			}
			again(b)
			b.put(kinds.IAMGroups(), "other", &iamv1alpha1.Group{})
			b.join("m", "alice", "other")
			b.work()
			if b.has("later", "alice") || !b.has("other", "alice") {
				t.Error("alice is where she was, or not where she is")
			}
			again(b)
			b.join("m", "bob", "other")
			b.work()
			if b.has("other", "alice") || !b.has("other", "bob") {
				t.Error("another user is the member")
			}
		})
	}
}

// What nobody registers holds nothing, and need not be looked at; what somebody comes to register is.
func TestRegisteredKindEnqueuesObjects(t *testing.T) {
	b := newReconcilerEnv(t)
	alice := b.put(kinds.IAMUsers(), "alice", &iamv1alpha1.User{})
	typ := iam.OpenFGAType(alice.Group, kinds.IAMUsers().Kind)
	its := Key{sort: tuples, object: iam.OpenFGAObject(typ, "", "alice")}
	b.work()
	if slices.Contains(b.AffectedKeys(alice), its) {
		t.Error("an object of a kind that nobody registers is looked at")
	}
	b.put(kinds.ProtectedResources(), "users", protect(typ, "users"))
	b.work()
	if !slices.Contains(b.AffectedKeys(alice), its) {
		t.Error("an object of a kind that is registered is not looked at")
	}
}
