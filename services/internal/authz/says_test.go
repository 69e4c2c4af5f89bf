package authz

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// TestIsBindingUpToDateComparesDecisiveFields verifies that IsBindingUpToDate compares every field that decides access,
// and no other field. Requests that wait for a binding depend on this.
func TestIsBindingUpToDateComparesDecisiveFields(t *testing.T) {
	for what, c := range map[string]struct {
		edit func(*iamv1alpha1.PolicyBinding)
		says bool
	}{
		"no change":      {func(*iamv1alpha1.PolicyBinding) {}, true},
		"a label":        {func(b *iamv1alpha1.PolicyBinding) { b.Labels = map[string]string{"a": "b"} }, true},
		"its status":     {func(b *iamv1alpha1.PolicyBinding) { b.Status.ObservedGeneration = 7 }, true},
		"another object": {func(b *iamv1alpha1.PolicyBinding) { b.UID = "x" }, false},
		"an owner": {func(b *iamv1alpha1.PolicyBinding) {
			b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "X", Name: "x"}}
		}, false},
		"a deletion":           {func(b *iamv1alpha1.PolicyBinding) { b.DeletionTimestamp = &metav1.Time{} }, false},
		"another name":         {func(b *iamv1alpha1.PolicyBinding) { b.Name = "x" }, false},
		"another role":         {func(b *iamv1alpha1.PolicyBinding) { b.Spec.RoleRef.Name = "x" }, false},
		"a role elsewhere":     {func(b *iamv1alpha1.PolicyBinding) { b.Spec.RoleRef.Namespace = "x" }, false},
		"the role's namespace": {func(b *iamv1alpha1.PolicyBinding) { b.Spec.RoleRef.Namespace = "one" }, true},
		"another target":       {func(b *iamv1alpha1.PolicyBinding) { b.Spec.ResourceSelector.ResourceRef.UID = "x" }, false},
		"a kind": {func(b *iamv1alpha1.PolicyBinding) {
			b.Spec.ResourceSelector = iamv1alpha1.ResourceSelector{ResourceKind: &iamv1alpha1.ResourceKind{APIGroup: "a", Kind: "Tree"}}
		}, false},
		"no target":        {func(b *iamv1alpha1.PolicyBinding) { b.Spec.ResourceSelector = iamv1alpha1.ResourceSelector{} }, false},
		"no subjects":      {func(b *iamv1alpha1.PolicyBinding) { b.Spec.Subjects = nil }, false},
		"repeated subject": {func(b *iamv1alpha1.PolicyBinding) { b.Spec.Subjects = append(b.Spec.Subjects, b.Spec.Subjects[0]) }, false},
		"subject without UID": {func(b *iamv1alpha1.PolicyBinding) {
			b.Spec.Subjects = append(b.Spec.Subjects, iamv1alpha1.Subject{Kind: "User", Name: "x"})
		}, true},
	} {
		x := indexWithTree()
		declared := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "oak", UID: "2"})
		declared.Namespace, declared.Name, declared.UID = "one", "b", "u"
		x.SetBinding("one", "b", declared)
		x.SetTarget(bindingType, "one", "b", &iam.BindingTarget{Namespace: "one", UID: "u"})
		b := declared.DeepCopy()
		if c.edit(b); x.IsBindingUpToDate(b) != c.says {
			t.Errorf("%s: got match %v, want %v", what, !c.says, c.says)
		}
	}
}

func TestIsUserUpToDateComparesDecisiveFields(t *testing.T) {
	declared := &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "mia", UID: "u"}}
	for what, c := range map[string]struct {
		edit func(*iamv1alpha1.User)
		says bool
	}{
		"no change":       {func(*iamv1alpha1.User) {}, true},
		"a label":         {func(u *iamv1alpha1.User) { u.Labels = map[string]string{"a": "b"} }, true},
		"another address": {func(u *iamv1alpha1.User) { u.Spec.Email = "x@example.com" }, true},
		"another User":    {func(u *iamv1alpha1.User) { u.UID = "x" }, false},
		"another name":    {func(u *iamv1alpha1.User) { u.Name = "x" }, false},
		"inactive":        {func(u *iamv1alpha1.User) { u.Status.State = iamv1alpha1.Inactive }, false},
		"a deletion":      {func(u *iamv1alpha1.User) { u.DeletionTimestamp = &metav1.Time{} }, false},
		"an owner": {func(u *iamv1alpha1.User) {
			u.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "X", Name: "x"}}
		}, false},
	} {
		x := New(nil)
		x.SetUser("mia", declared)
		x.SetTarget(userType, "", "mia", &iam.BindingTarget{UID: "u"})
		u := declared.DeepCopy()
		if c.edit(u); x.IsUserUpToDate(u) != c.says {
			t.Errorf("%s: got match %v, want %v", what, !c.says, c.says)
		}
	}
}
