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

// indexWithManyGroups returns an index and a query of the user mia. mia is a member of the first groups; in is their
// number. Each of the last groups has a role on the tree of the query, by its own binding; given is their number.
// Exactly one group is in both sets.
func indexWithManyGroups(in, given int) (*Index, Query) {
	x := indexWithTree()
	x.SetUser("mia", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
	x.SetTarget("a/Tree", "one", "ash", &iam.BindingTarget{Namespace: "one", UID: "2"})
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
		x.SetBinding("one", fmt.Sprint("aside", i), aside) // Every group also has a role on another tree.
		if i >= in-1 {
			b := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "ash", UID: "2"})
			b.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "Group", Name: group(i), Namespace: "one", UID: group(i)}}
			x.SetBinding("one", fmt.Sprint("b", i), b)
		}
	}
	return x, get("mia", "one", "ash")
}

// TestRemovedMembershipKeepsOtherMembership verifies that one of two memberships in a group is enough. A membership has
// an effect only for the User whose UID it records.
func TestRemovedMembershipKeepsOtherMembership(t *testing.T) {
	x, q := indexWithManyGroups(1, 1)
	second := &iamv1alpha1.GroupMembership{Status: iamv1alpha1.GroupMembershipStatus{User: &iamv1alpha1.Member{Name: "mia", UID: "1"}}}
	second.Spec.UserRef.Name, second.Spec.GroupRef.Namespace, second.Spec.GroupRef.Name = "mia", "one", group(0)
	allowed := func(when string, want bool) {
		t.Helper()
		if _, ok := x.Decide(q); ok != want {
			t.Errorf("%s: got allowed %v, want %v", when, ok, want)
		}
	}
	x.SetMembership("one", "second", second)
	x.SetMembership("one", "m0", nil)
	allowed("only the second membership left", true)
	another := second.DeepCopy()
	another.Status.User.UID = "2"
	x.SetMembership("one", "second", another)
	allowed("membership of another user", false)
	x.SetUser("mia", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "2"}})
	allowed("user with the UID of the membership", true)
	x.SetGroup("one", group(0), &iamv1alpha1.Group{ObjectMeta: metav1.ObjectMeta{UID: "other"}})
	allowed("another group of the same name", false)
}

// TestGrantsAreDistinguishedByUID binds two users to objects with the same name and different UIDs. Both
// bindings take effect while the type is trusted and no object is known. Once the object is known, only the binding
// with its UID takes effect.
func TestGrantsAreDistinguishedByUID(t *testing.T) {
	x := setTree(New(func(string) bool { return true }))
	for i, user := range []string{"ann", "ben"} {
		x.SetUser(user, &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
		b := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "ash", UID: fmt.Sprint(i)})
		b.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "User", Name: user, UID: "1"}}
		x.SetBinding("one", user, b)
	}
	for there, want := range map[string][2]bool{"": {true, true}, "0": {true, false}, "1": {false, true}, "2": {false, false}} {
		x.SetTarget("a/Tree", "one", "ash", nil)
		if there != "" {
			x.SetTarget("a/Tree", "one", "ash", &iam.BindingTarget{Namespace: "one", UID: there})
		}
		for i, user := range []string{"ann", "ben"} {
			if _, ok := x.Decide(get(user, "one", "ash")); ok != want[i] {
				t.Errorf("object with UID %q, user %s: got allowed %v, want %v", there, user, ok, want[i])
			}
		}
	}
}

func BenchmarkDecideOfManyGroups(b *testing.B) {
	for _, of := range [][2]int{{3, 3}, {flood, 3}, {3, flood}} {
		b.Run(fmt.Sprintf("in=%d/given=%d", of[0], of[1]), func(b *testing.B) {
			x, q := indexWithManyGroups(of[0], of[1])
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := x.Decide(q); !ok {
					b.Fatal("refused")
				}
			}
		})
	}
}
