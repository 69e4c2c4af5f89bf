package derived

import (
	"fmt"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// project declares a Project of an organization.
func (b *reconcilerEnv) project(name, organization string) {
	b.t.Helper()
	p := &resourcemanagerv1alpha1.Project{}
	p.Spec.OwnerRef.Name = organization
	b.put(kinds.Projects(), name, p)
}

// varied declares objects of every kind, with names that were deleted and created again. They give no more than peopled
// gives.
func (b *reconcilerEnv) varied() {
	b.t.Helper()
	b.peopled()
	b.put(kinds.IAMUsers(), "idle", &iamv1alpha1.User{Status: iamv1alpha1.UserStatus{State: iamv1alpha1.Inactive}})
	b.put(kinds.IAMUsers(), "carol", &iamv1alpha1.User{})
	b.put(kinds.IAMGroups(), "others", &iamv1alpha1.Group{})
	b.put(kinds.IAMRoles(), "base", &iamv1alpha1.Role{})
	b.put(kinds.IAMRoles(), "above", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{InheritedRoles: []iamv1alpha1.ScopedRoleReference{{Name: "base"}}}})
	b.put(kinds.IAMRoles(), "gone", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{getDoc}}})
	for _, name := range []string{"acme", "evil", "anew"} {
		b.put(kinds.Organizations(), name, &resourcemanagerv1alpha1.Organization{})
	}
	b.project("web", "acme")
	b.project("lost", "anew")
	b.work()
	b.drop(kinds.Organizations(), "anew")
	b.put(kinds.Organizations(), "anew", &resourcemanagerv1alpha1.Organization{})
	b.join("idle-staff", "idle", "staff")
	b.bind("of-the-role-that-goes", "gone", b.subject(kinds.IAMUsers(), "bob"))
	for i, subject := range []iamv1alpha1.Subject{
		{Kind: "User", Name: "carol", UID: "eve"}, {Kind: "Group", Name: "others", Namespace: ns, UID: "eve"},
	} {
		b.bind(fmt.Sprint("of-eve-", i), "viewer", subject)
	}
	on := &iamv1alpha1.PolicyBinding{Spec: iamv1alpha1.PolicyBindingSpec{
		RoleRef: iamv1alpha1.RoleReference{Name: "viewer"}, Subjects: []iamv1alpha1.Subject{b.subject(kinds.IAMUsers(), "bob")},
	}}
	on.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: "resourcemanager.miloapis.com", Kind: "Project", Name: "web", UID: "eve"}
	b.put(kinds.PolicyBindings(), "on-another", on)
	b.work()
	b.drop(kinds.IAMRoles(), "gone")
	b.work()
}
