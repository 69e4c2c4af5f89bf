package authz

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

const flood = 100_000

func group(i int) string { return fmt.Sprint("group", i) }

// flooded is an index in which a user is in the first so many groups, and the last so many have a role on a tree, by a binding
// of each. One group is of both.
func flooded(in, given int) (*Index, Query) {
	x := trees()
	x.SetUser("mia", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
	x.SetTarget("a/Tree", "one", "ash", &iam.Target{Namespace: "one", UID: "2"})
	for i := range in + given - 1 {
		g := &iamv1alpha1.Group{ObjectMeta: metav1.ObjectMeta{UID: types.UID(group(i))}}
		x.SetGroup("one", group(i), g)
		if i < in {
			m := &iamv1alpha1.GroupMembership{Status: iamv1alpha1.GroupMembershipStatus{User: &iamv1alpha1.Member{Name: "mia", UID: "1"}}}
			m.Spec.UserRef.Name, m.Spec.GroupRef.Namespace, m.Spec.GroupRef.Name = "mia", "one", group(i)
			x.SetMembership("one", fmt.Sprint("m", i), m)
		}
		aside := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "oak", UID: "3"})
		aside.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "Group", Name: group(i), Namespace: "one", UID: group(i)}}
		x.SetBinding("one", fmt.Sprint("aside", i), aside) // Each has something somewhere.
		if i >= in-1 {
			b := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "ash", UID: "2"})
			b.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "Group", Name: group(i), Namespace: "one", UID: group(i)}}
			x.SetBinding("one", fmt.Sprint("b", i), b)
		}
	}
	return x, get("mia", "one", "ash")
}

// Of two memberships in one group one is enough, and each counts for the User that it is recorded for.
func TestAMembershipLessIsNoMembershipLost(t *testing.T) {
	x, q := flooded(1, 1)
	second := &iamv1alpha1.GroupMembership{Status: iamv1alpha1.GroupMembershipStatus{User: &iamv1alpha1.Member{Name: "mia", UID: "1"}}}
	second.Spec.UserRef.Name, second.Spec.GroupRef.Namespace, second.Spec.GroupRef.Name = "mia", "one", group(0)
	allowed := func(when string, want bool) {
		t.Helper()
		if _, ok := x.Decide(q); ok != want {
			t.Errorf("%s it is allowed: %v", when, ok)
		}
	}
	x.SetMembership("one", "second", second)
	x.SetMembership("one", "m0", nil)
	allowed("by the second", true)
	another := second.DeepCopy()
	another.Status.User.UID = "2"
	x.SetMembership("one", "second", another)
	allowed("by one of another user", false)
	x.SetUser("mia", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "2"}})
	allowed("when that is the user", true)
	x.SetGroup("one", group(0), &iamv1alpha1.Group{ObjectMeta: metav1.ObjectMeta{UID: "anew"}})
	allowed("in another group of the name", false)
}

// Of objects that nobody follows it is not known which one is there. Once it is, what was meant for others of the name is nobody's.
func TestGrantsOnWhatMayBeThereAreToldApart(t *testing.T) {
	x := plant(New(func(string) bool { return true }))
	for i, user := range []string{"ann", "ben"} {
		x.SetUser(user, &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
		b := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "ash", UID: fmt.Sprint(i)})
		b.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "User", Name: user, UID: "1"}}
		x.SetBinding("one", user, b)
	}
	for there, want := range map[string][2]bool{"": {true, true}, "0": {true, false}, "1": {false, true}, "2": {false, false}} {
		x.SetTarget("a/Tree", "one", "ash", nil)
		if there != "" {
			x.SetTarget("a/Tree", "one", "ash", &iam.Target{Namespace: "one", UID: there})
		}
		for i, user := range []string{"ann", "ben"} {
			if _, ok := x.Decide(get(user, "one", "ash")); ok != want[i] {
				t.Errorf("with %q there %s may: %v", there, user, ok)
			}
		}
	}
}

func BenchmarkDecideOfManyGroups(b *testing.B) {
	for _, of := range [][2]int{{3, 3}, {flood, 3}, {3, flood}} {
		b.Run(fmt.Sprintf("in=%d/given=%d", of[0], of[1]), func(b *testing.B) {
			x, q := flooded(of[0], of[1])
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := x.Decide(q); !ok {
					b.Fatal("refused")
				}
			}
		})
	}
}
