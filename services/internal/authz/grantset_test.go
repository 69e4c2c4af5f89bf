package authz

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// TestGrantLastsUntilLastBindingIsRemoved removes bindings one by one. Each grant must remain until its last binding
// is removed, in small sets and in large ones.
func TestGrantLastsUntilLastBindingIsRemoved(t *testing.T) {
	for _, many := range []int{1, fewGrants / 2, fewGrants, fewGrants + 1, 5 * fewGrants} {
		x := indexWithTree()
		on := func(i int) *iamv1alpha1.PolicyBinding {
			return binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: tree(i), UID: "2"})
		}
		have := func(when string, from int) {
			t.Helper()
			for i := range many {
				if got := x.gets("alice", "one", tree(i)); got != (i >= from) {
					t.Fatalf("%d trees, %s: tree %d: got allowed %v", many, when, i, got)
				}
			}
			// The additional right is the one on the oak.
			if rights := x.ListHeldRoles(Subject{User: "alice"}); len(rights) != many-from+1 {
				t.Fatalf("%d trees, %s: got %d rights", many, when, len(rights))
			}
		}
		for i := range many {
			x.SetTarget("a/Tree", "one", tree(i), &iam.BindingTarget{Namespace: "one", UID: "2"})
			x.SetBinding("one", fmt.Sprint("b", i), on(i))
			x.SetBinding("one", fmt.Sprint("second", i), on(i))
		}
		have("two bindings for each tree", 0)
		for i := range many {
			x.SetBinding("one", fmt.Sprint("b", i), nil)
			have("after removal of a first binding", 0)
		}
		for i := range many {
			x.SetBinding("one", fmt.Sprint("second", i), nil)
			have("after removal of a last binding", i+1)
		}
		if p := x.principals[Principal{User, Ref{Name: "alice"}, "1"}]; p == nil || p.grants.grantCountBound() != 1 {
			t.Errorf("%d trees: principal left after removal: %+v", many, p)
		}
	}
}

// indexWithBindingParents returns an index in which a tree can be the parent of a PolicyBinding.
func indexWithBindingParents() *Index {
	x := indexWithTree()
	p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "bindings"}}
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "iam.miloapis.com", "PolicyBinding", "policybindings", []string{"get"}
	p.Spec.ParentResources = []iamv1alpha1.ParentResourceRef{{APIGroup: "a", Kind: "Tree"}}
	x.SetProtectedResource("bindings", p)
	x.SetRole("one", "auditor", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"iam.miloapis.com/policybindings.get"}}})
	x.SetUser("bob", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "9"}})
	return x
}

// TestDecideOnPolicyBindingAsTarget verifies that a role can be held on a PolicyBinding by its UID, and on its owners.
// The index need not have an entry for the scope.
func TestDecideOnPolicyBindingAsTarget(t *testing.T) {
	x := indexWithBindingParents()
	declare := func(uid string, owners ...iam.Owner) {
		b := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "elm", UID: "3"})
		b.UID = types.UID(uid)
		target := &iam.BindingTarget{Namespace: "one", UID: uid, Owners: owners}
		if uid == "" {
			b, target = nil, nil
		}
		x.SetBinding("one", "object", b)
		x.SetTarget(bindingType, "one", "object", target)
	}
	audit := func(name string, on *iamv1alpha1.ResourceReference) {
		b := binds(on)
		b.Spec.RoleRef.Name, b.Spec.Subjects = "auditor", []iamv1alpha1.Subject{{Kind: "User", Name: "bob", UID: "9"}}
		x.SetBinding("one", name, b)
	}
	q := Query{Subject: Subject{User: "bob"}, Permission: "iam.miloapis.com/policybindings.get", Type: bindingType, Namespace: "one", Name: "object"}
	may := func(when string, want bool) {
		t.Helper()
		if _, ok := x.Decide(q); ok != want {
			t.Errorf("%s: got allowed %v, want %v", when, ok, want)
		}
	}
	absent := func(when string, want bool) {
		t.Helper()
		if e := x.Explain(q); e.NoObject != want {
			t.Errorf("%s: got NoObject %v, want %v", when, e.NoObject, want)
		}
	}
	absent("before the binding is declared", true)
	declare("u1")
	absent("after the binding is declared", false)
	if e := x.Explain(get("alice", "one", "object")); !e.NoObject {
		t.Error("a tree of the same name exists, too")
	}
	if len(x.places) != 2 {
		t.Errorf("the binding has its own place: got %d places, want 2", len(x.places))
	}
	audit("audit", &iamv1alpha1.ResourceReference{APIGroup: "iam.miloapis.com", Kind: "PolicyBinding", Namespace: "one", Name: "object", UID: "u1"})
	may("role on the binding", true)
	declare("u2")
	may("other binding of the same name", false)
	declare("u1")
	may("original UID again", true)
	declare("")
	may("after removal", false)
	absent("after removal", true)
	declare("u1")
	may("declared again", true)
	x.SetBinding("one", "audit", nil)
	may("role removed", false)
	declare("")
	declare("u3")
	oak := iam.Owner{Type: "a/Tree", Name: "oak", UID: "2"}
	audit("above", &iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "oak", UID: "2"})
	may("no owner", false)
	declare("u3", oak)
	may("owned by the oak", true)
	declare("u3")
	may("owner removed", false)
	declare("u3", iam.Owner{Type: "a/Tree", Name: "oak", UID: "5"})
	may("owned by another oak", false)
	other := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "elm", UID: "3"})
	other.UID = "v1"
	x.SetBinding("one", "other", other)
	x.SetTarget(bindingType, "one", "other", &iam.BindingTarget{Namespace: "one", UID: "v2"})
	if at := (Scope{Type: bindingType, Ref: Ref{"one", "other"}}); !x.existsWithUID(at, "v2") || x.existsWithUID(at, "v1") {
		t.Error("the object has the UID of the declaration, not of the target")
	}
	all := binds(nil)
	all.Spec.RoleRef.Name, all.Spec.Subjects = "auditor", []iamv1alpha1.Subject{{Kind: "User", Name: "bob", UID: "9"}}
	all.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: "iam.miloapis.com", Kind: "PolicyBinding"}
	x.SetBinding("one", "all", all)
	may("role on all bindings", true)
}
