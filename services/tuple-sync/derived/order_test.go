//go:build !race

package derived

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Large grants delay no revocation.
func TestRevocationOvertakesLargeGrants(t *testing.T) {
	for name, take := range map[string]func(*reconcilerEnv){
		"a binding goes":             func(b *reconcilerEnv) { b.drop(kinds.PolicyBindings(), "bob") },
		"a subject is taken out":     func(b *reconcilerEnv) { b.bind("bob", "viewer", b.subject(kinds.IAMUsers(), "alice")) },
		"a user is Inactive":         func(b *reconcilerEnv) { b.inactive("bob") },
		"a user is to go":            func(b *reconcilerEnv) { b.going("bob") },
		"a role gives nothing more":  func(b *reconcilerEnv) { b.put(kinds.IAMRoles(), "viewer", &iamv1alpha1.Role{}) },
		"somebody opened a door":     func(b *reconcilerEnv) { b.openFGA.change(undeclaredTuple("bob"), true); b.ask(Key{sort: tail}) },
		"one is taken from the many": func(b *reconcilerEnv) { b.drop(kinds.PolicyBindings(), "zz-300") },
		"an owner is taken out":      func(b *reconcilerEnv) { b.doc("mine", "") },
		"an owner is another":        func(b *reconcilerEnv) { b.doc("mine", "api") },
		"a record is taken out": func(b *reconcilerEnv) {
			c := b.api[b.keyOf(kinds.Projects(), "web")]
			p := &resourcemanagerv1alpha1.Project{}
			if err := c.Decode(p); err != nil {
				b.t.Fatal(err)
			}
			p.Status.Organization = nil
			b.take(b.written(c, p))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReconcilerEnv(t)
			b.peopled()
			b.owned()
			b.put(kinds.IAMRoles(), "helper", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{getProject}}})
			b.work()
			give := func(from, to int) { // Elsewhere: who looks at what is given finds nothing that is taken away.
				for i := range to - from {
					p := &iamv1alpha1.PolicyBinding{}
					p.Spec.RoleRef.Name, p.Spec.Subjects = "helper", []iamv1alpha1.Subject{{Kind: "Group", Name: fmt.Sprint("oidc:", from+i)}}
					p.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: "resourcemanager.miloapis.com", Kind: "Project"}
					b.put(kinds.PolicyBindings(), fmt.Sprintf("zz-%d", from+i), p)
				}
			}
			if name == "one is taken from the many" {
				give(0, large+100) // What it is taken from is large.
				b.work()
			}
			many := 500
			if name == "a binding goes" {
				many = 5000
			}
			give(1000, 1000+many)
			b.backwards = true // Whoever gives has the first names.
			take(b)
			before, writes := b.openFGA.holds(), len(b.openFGA.writes)
			for turns := 0; len(b.openFGA.writes) == writes; turns++ {
				if turns > 20 {
					t.Fatalf("in %d turns nothing is taken away", turns)
				}
				b.turn()
			}
			first := b.openFGA.writes[writes]
			if len(first.Remove) == 0 || len(first.Add) > 0 || slices.Equal(before, b.openFGA.holds()) {
				t.Errorf("first of all is written %+v", first)
			}
		})
	}
}

func (b *reconcilerEnv) inactive(user string) {
	b.put(kinds.IAMUsers(), user, &iamv1alpha1.User{Status: iamv1alpha1.UserStatus{State: iamv1alpha1.Inactive}})
}

func (b *reconcilerEnv) going(user string) {
	b.put(kinds.IAMUsers(), user, &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}})
}

// The mark of an object ends.
func TestClearRevokingEndsPriority(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.drop(kinds.PolicyBindings(), "bob")
	b.fail = func() error { return errTrouble }
	b.try(30)
	b.fail = func() error { return nil }
	b.work()
	if marked := b.State.taken.keys; len(marked) > 0 {
		t.Errorf("marked are %v", marked)
	}
	if !strings.HasPrefix(b.tells(kinds.PolicyBindings(), "staff"), "True/") {
		t.Error("it is not ready")
	}
}
