package iam_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam/world"
)

// An object in deletion counts as deleted, even while a finalizer keeps it.
func TestDeletingRoleDoesNotGivePermissions(t *testing.T) {
	trees := &iamv1alpha1.ProtectedResource{}
	trees.Spec.ServiceRef.Name, trees.Spec.Kind, trees.Spec.Plural, trees.Spec.Permissions = "a", "Tree", "trees", []string{"get"}
	viewer, heir := &iamv1alpha1.Role{}, &iamv1alpha1.Role{}
	viewer.Namespace, viewer.Name, viewer.UID, viewer.Spec.IncludedPermissions = "ns", "viewer", "1", []string{"a/trees.get"}
	heir.Namespace, heir.Name, heir.UID, heir.Spec.InheritedRoles = "ns", "heir", "2", []iamv1alpha1.ScopedRoleReference{{Name: "viewer"}}
	b := &iamv1alpha1.PolicyBinding{}
	b.Namespace, b.Spec.RoleRef.Name = "ns", "viewer"
	w := &world.World{Resources: []*iamv1alpha1.ProtectedResource{trees}}
	w.Roles = []*iamv1alpha1.Role{viewer, heir}
	o := objects(w)
	if is := o.RoleOfBinding(b); is != viewer || len(o.EffectivePermissions(heir).All) != 1 {
		t.Fatalf("before the deletion: got role %v", is)
	}
	viewer.DeletionTimestamp = new(metav1.Now())
	o = objects(w) // The cache holds the roles before the change.
	if is := o.RoleOfBinding(b); is != nil {
		t.Error("the binding still has the deleted role")
	}
	if gives := o.EffectivePermissions(heir); len(gives.All) > 0 || len(gives.Missing) != 1 {
		t.Errorf("heir of the deleted role: got %+v", gives)
	}
}

func TestInactiveOrDeletingAccountIsNotSubject(t *testing.T) {
	a := &iamv1alpha1.ServiceAccount{}
	a.Name, a.UID = "robot", "1"
	w := &world.World{Accounts: []*iamv1alpha1.ServiceAccount{a}}
	o := objects(w)
	is := func(when string, acts bool, want string) {
		t.Helper()
		if subject, reason := o.ResolveSubject(iamv1alpha1.Subject{Kind: "ServiceAccount", Name: "robot", UID: "1"}); (subject != "") != acts || reason != want {
			t.Errorf("%s it is %q, %q", when, subject, reason)
		}
	}
	is("as it is,", true, "")
	a.Spec.State = iamv1alpha1.Inactive
	is("inactive,", false, "")
	if subject, reason := o.ResolveSubject(iamv1alpha1.Subject{Kind: "ServiceAccount", Namespace: "n", Name: "robot", UID: "1"}); subject+reason != "" {
		t.Errorf("inactive, and taken for one of the core API, it is %q, %q", subject, reason)
	}
	a.Spec.State, a.DeletionTimestamp = "", new(metav1.Now())
	is("to go,", false, iamv1alpha1.NotFound)
}
