//go:build !race

package derived

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/seeds"
)

// Whatever changes and fails, the store finally holds what follows from the objects. A reconciler that then starts again
// writes nothing.
func TestStoreConvergesInRandomHistories(t *testing.T) {
	for seed := range seeds.SeedRange(t, 150) {
		b, r := newReconcilerEnv(t), rand.New(rand.NewPCG(seed, 1))
		b.fail = func() error {
			if r.IntN(12) == 0 {
				return errTrouble
			}
			return nil
		}
		for range 80 {
			b.anything(r)
			b.try(r.IntN(8))
			switch r.IntN(60) {
			case 0:
				b.open() // After a crash.
			case 1:
				b.openFGA.change(undeclaredTuple("eve"), true)
			case 2: // Somebody else's hand on what is declared.
				b.openFGA.tuples = b.openFGA.tuples[:r.IntN(len(b.openFGA.tuples)+1)]
				b.open()
			}
		}
		b.fail = func() error { return nil }
		b.work()
		b.follow()
		if got, want := b.openFGA.holds(), b.wanted(); !slices.Equal(got, want) {
			t.Fatalf("history %d: the store holds\n%v\nwant\n%v", seed, got, want)
		}
		version, writes := b.version, len(b.openFGA.writes)
		b.open()
		b.work()
		if b.version != version || len(b.openFGA.writes) != writes {
			t.Fatalf("history %d: %d statuses are written again, %d calls made", seed, b.version-version, len(b.openFGA.writes)-writes)
		}
	}
}

// Objects may be deleted in any order: each removes its tuples, and none is left.
func TestDeletionInAnyOrderDoesNotLeaveTuples(t *testing.T) {
	for seed := range seeds.SeedRange(t, 80) {
		b, r := newReconcilerEnv(t), rand.New(rand.NewPCG(seed, 2))
		b.backwards = seed%2 == 1
		b.varied()
		all := slices.SortedFunc(maps.Keys(b.api), func(x, y event.Key) int { return strings.Compare(x.String(), y.String()) })
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, k := range all {
			if k.GroupResource == kinds.Stores().GroupResource {
				continue
			}
			kind, _ := kinds.ByResource(k.GroupResource)
			b.drop(kind, k.Name)
			if b.try(r.IntN(6)); r.IntN(4) > 0 {
				continue
			}
			b.work()
			if got, want := b.openFGA.holds(), b.wanted(); !slices.Equal(got, want) {
				t.Fatalf("order %d: without %s the store holds\n%v\nwant\n%v", seed, k, got, want)
			}
		}
		if b.work(); len(b.openFGA.tuples) > 0 {
			t.Fatalf("order %d: there is left %v", seed, b.openFGA.holds())
		}
	}
}

// anything does one thing that people do.
func (b *reconcilerEnv) anything(r *rand.Rand) {
	b.t.Helper()
	some := func(prefix string) string { return fmt.Sprintf("%s-%d", prefix, r.IntN(3)) }
	switch r.IntN(11) {
	case 0:
		u := &iamv1alpha1.User{}
		if r.IntN(5) == 0 {
			u.Status.State = iamv1alpha1.Inactive
		}
		b.put(kinds.IAMUsers(), some("user"), u)
	case 1:
		b.put(kinds.IAMGroups(), some("group"), &iamv1alpha1.Group{})
	case 2:
		b.join(some("member"), some("user"), some("group")) // Perhaps one that is there: for another user, of another group.
	case 3:
		role := &iamv1alpha1.Role{}
		role.Spec.IncludedPermissions = []string{getDoc, getProject, "a.example/nothings.get"}[:r.IntN(4)]
		role.Spec.InheritedRoles = []iamv1alpha1.ScopedRoleReference{{Name: some("role")}, {Name: some("role")}}[:r.IntN(3)]
		b.put(kinds.IAMRoles(), some("role"), role)
	case 4:
		b.put(kinds.Organizations(), some("org"), &resourcemanagerv1alpha1.Organization{})
	case 5:
		p := &resourcemanagerv1alpha1.Project{}
		p.Spec.OwnerRef.Name = some("org")
		b.put(kinds.Projects(), some("project"), p)
	case 6, 7, 8:
		b.bindAny(r, some)
	default:
		of := []kinds.Kind{kinds.IAMUsers(), kinds.IAMGroups(), kinds.GroupMemberships(), kinds.IAMRoles(), kinds.Organizations(), kinds.Projects(), kinds.PolicyBindings()}
		prefixes := []string{"user", "group", "member", "role", "org", "project", "binding"}
		i := r.IntN(len(of))
		b.drop(of[i], some(prefixes[i]))
	}
}

// bindAny binds a role to who is there or not, on a kind, or on an object that is there or not.
func (b *reconcilerEnv) bindAny(r *rand.Rand, some func(string) string) {
	b.t.Helper()
	p := &iamv1alpha1.PolicyBinding{ObjectMeta: metav1.ObjectMeta{}}
	p.Spec.RoleRef.Name = some("role")
	p.Spec.Subjects = []iamv1alpha1.Subject{
		b.subject(kinds.IAMUsers(), some("user")), b.subject(kinds.IAMGroups(), some("group")), {Kind: "Group", Name: "oidc:staff"},
	}[r.IntN(3):]
	if name := some("project"); r.IntN(3) > 0 {
		p.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{
			APIGroup: resourcemanagerv1alpha1.GroupVersion.Group, Kind: "Project", Name: name, UID: b.api[b.keyOf(kinds.Projects(), name)].UID,
		}
	} else {
		p.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: "a.example", Kind: "Doc"}
	}
	name := some("binding")
	var had iamv1alpha1.PolicyBinding
	if c, there := b.api[b.keyOf(kinds.PolicyBindings(), name)]; there && r.IntN(2) == 0 && c.Decode(&had) == nil {
		p.Spec.RoleRef, p.Spec.ResourceSelector = had.Spec.RoleRef, had.Spec.ResourceSelector // They never change.
	} else {
		b.drop(kinds.PolicyBindings(), name)
	}
	b.put(kinds.PolicyBindings(), name, p)
}
