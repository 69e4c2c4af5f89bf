package derived

import (
	"fmt"
	"slices"
	"testing"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestLostReferencesAreThoseWhoseUIDIsGone(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	list := func() []string {
		lost, _ := b.State.LostReferences()
		var all []string
		for _, l := range lost {
			all = append(all, fmt.Sprintf("%s %s %s %s", l.Binding.Name, l.Field, l.Object, l.Reason))
		}
		slices.Sort(all)
		return all
	}
	if got := list(); len(got) != 0 {
		t.Fatalf("got %q while all objects exist, want none", got)
	}
	b.bind("both", "viewer", b.subject(kinds.IAMUsers(), "alice"), b.subject(kinds.IAMUsers(), "bob"))
	b.bind("token", "nosuchrole", iamv1alpha1.Subject{Kind: "Group", Name: "oidc:all"}, iamv1alpha1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "ci", UID: "x"})
	b.drop(kinds.IAMUsers(), "bob")
	b.work()
	want := []string{"bob spec.subjects[0] User/bob NotFound", "both spec.subjects[1] User/bob NotFound"}
	if got := list(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	b.put(kinds.IAMUsers(), "bob", &iamv1alpha1.User{}) // Another bob: the bindings hold for the uid of the first.
	b.drop(kinds.IAMUsers(), "alice")
	b.work()
	want = []string{
		"alice-staff spec.userRef User/alice NotFound", "bob spec.subjects[0] User/bob UIDMismatch", "both spec.subjects[0] User/alice NotFound",
		"both spec.subjects[1] User/bob UIDMismatch",
	}
	if got := list(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, unchecked := b.State.LostReferences(); !slices.Equal(unchecked, []string{"ServiceAccounts of the core API"}) {
		t.Errorf("got %q, want the accounts of the core API", unchecked)
	}
}
