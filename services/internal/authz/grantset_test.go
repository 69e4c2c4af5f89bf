package authz

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// Somebody who has few grants, and more of them than few, has each as long as one binding gives it.
func TestEachGrantIsHadAsLongAsABindingGivesIt(t *testing.T) {
	for _, many := range []int{1, fewGrants / 2, fewGrants, fewGrants + 1, 5 * fewGrants} {
		x := trees()
		on := func(i int) *iamv1alpha1.PolicyBinding {
			return binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: tree(i), UID: "2"})
		}
		have := func(when string, from int) {
			t.Helper()
			for i := range many {
				if got := x.gets("alice", "one", tree(i)); got != (i >= from) {
					t.Fatalf("of %d, %s, tree %d may be got: %v", many, when, i, got)
				}
			}
			if rights := x.WhatCan(Subject{User: "alice"}); len(rights) != many-from+1 { // The oak is hers, too.
				t.Fatalf("of %d, %s, there are %d rights", many, when, len(rights))
			}
		}
		for i := range many {
			x.SetTarget("a/Tree", "one", tree(i), &iam.Target{Namespace: "one", UID: "2"})
			x.SetBinding("one", fmt.Sprint("b", i), on(i))
			x.SetBinding("one", fmt.Sprint("second", i), on(i))
		}
		have("by two bindings each", 0)
		for i := range many {
			x.SetBinding("one", fmt.Sprint("b", i), nil)
			have("by one binding less", 0)
		}
		for i := range many {
			x.SetBinding("one", fmt.Sprint("second", i), nil)
			have("by the last binding less", i+1)
		}
		if p := x.principals[Principal{User, Ref{Name: "alice"}, "1"}]; p == nil || p.grants.atLeastSize() != 1 {
			t.Errorf("of %d, what is left is %+v", many, p)
		}
	}
}

// delegated is an index in which a PolicyBinding is an object of a kind that is below trees.
func delegated() *Index {
	x := trees()
	p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "bindings"}}
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "iam.miloapis.com", "PolicyBinding", "policybindings", []string{"get"}
	p.Spec.ParentResources = []iamv1alpha1.ParentResourceRef{{APIGroup: "a", Kind: "Tree"}}
	x.SetProtectedResource("bindings", p)
	x.SetRole("one", "auditor", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"iam.miloapis.com/policybindings.get"}}})
	x.SetUser("bob", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "9"}})
	return x
}

// A binding is an object on which roles can be had, as others are: by its UID, and below what owns it; and for each that is there,
// whether or not something else is known of it.
func TestABindingIsAnObjectAsOthersAre(t *testing.T) {
	x := delegated()
	declare := func(uid string, owners ...iam.Owner) {
		b := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "elm", UID: "3"})
		b.UID = types.UID(uid)
		target := &iam.Target{Namespace: "one", UID: uid, Owners: owners}
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
			t.Errorf("%s bob may: %v", when, ok)
		}
	}
	absent := func(when string, want bool) {
		t.Helper()
		if e := x.Explain(q); e.NoObject != want {
			t.Errorf("%s it is absent: %v", when, e.NoObject)
		}
	}
	absent("before it is declared", true)
	declare("u1")
	absent("once it is declared", false)
	if e := x.Explain(get("alice", "one", "object")); !e.NoObject {
		t.Error("a tree of its name is there, too")
	}
	if len(x.places) != 2 {
		t.Errorf("of a binding is kept more than itself: %d places", len(x.places))
	}
	audit("audit", &iamv1alpha1.ResourceReference{APIGroup: "iam.miloapis.com", Kind: "PolicyBinding", Namespace: "one", Name: "object", UID: "u1"})
	may("with a role on it", true)
	declare("u2")
	may("when another has the name", false)
	declare("u1")
	may("when it is the one again", true)
	declare("")
	may("when it is gone", false)
	absent("when it is gone", true)
	declare("u1")
	may("when it is back", true)
	x.SetBinding("one", "audit", nil)
	may("without the role", false)
	declare("")
	declare("u3")
	oak := iam.Owner{Type: "a/Tree", Name: "oak", UID: "2"}
	audit("above", &iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "oak", UID: "2"})
	may("while it is of nothing", false)
	declare("u3", oak)
	may("when it is of the oak", true)
	declare("u3")
	may("when it is of nothing again", false)
	declare("u3", iam.Owner{Type: "a/Tree", Name: "oak", UID: "5"})
	may("when it is of another oak", false)
	other := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "elm", UID: "3"})
	other.UID = "v1"
	x.SetBinding("one", "other", other)
	x.SetTarget(bindingType, "one", "other", &iam.Target{Namespace: "one", UID: "v2"})
	if at := (Scope{Type: bindingType, Ref: Ref{"one", "other"}}); !x.isThere(at, "v2") || x.isThere(at, "v1") {
		t.Error("it is the one that declared it, not the one that is there")
	}
	all := binds(nil)
	all.Spec.RoleRef.Name, all.Spec.Subjects = "auditor", []iamv1alpha1.Subject{{Kind: "User", Name: "bob", UID: "9"}}
	all.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: "iam.miloapis.com", Kind: "PolicyBinding"}
	x.SetBinding("one", "all", all)
	may("with a role on all", true)
}
