package iam

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
)

// Lookup provides the declared objects. A lookup returns nil or false for a missing object. Lookups may return objects
// in deletion: these count as gone.
type Lookup struct {
	Registry *Registry
	// Inheritance caches the permissions of roles. With nil, nothing is cached.
	Inheritance *InheritanceCache

	Role           func(namespace, name string) *iamv1alpha1.Role
	Group          func(namespace, name string) *iamv1alpha1.Group
	User           func(name string) *iamv1alpha1.User
	ServiceAccount func(name string) *iamv1alpha1.ServiceAccount
	// Target returns the object of a registered kind by its [ObjectName] name.
	Target func(object string) (BindingTarget, bool)
	// Trusted reports, for a kind that is not watched, whether bindings on its objects act nevertheless. Nil means none
	// do.
	Trusted func(typ string) bool
	// Scope reports whether a kind is namespaced and whether its objects are watched. It only refines the reasons of
	// [Lookup.InvalidTargetReason], and may be nil.
	Scope func(typ string) (namespaced, followed bool)

	// Inactive reports whether a [UserSubject] or a [ServiceAccountSubject] subject is deactivated. [Lookup.BuildCheck] requires it.
	// Elsewhere nil means that no subject is.
	Inactive func(subject string) bool

	// RoleOf and GroupOf return the Role of a [RoleObject] and the Group of a [GroupObject].
	RoleOf  func(object string) *iamv1alpha1.Role
	GroupOf func(object string) *iamv1alpha1.Group
	// BindingsOn lists the bindings on a target, named as by [TargetOfBinding].
	BindingsOn func(target string) []*iamv1alpha1.PolicyBinding
	// BindingsBy lists the bindings with this [RoleTargetIndexKey].
	BindingsBy func(index string) []*iamv1alpha1.PolicyBinding
	// MembershipsOf lists the memberships of a group.
	MembershipsOf func(namespace, name string) []*iamv1alpha1.GroupMembership
}

// BindingTarget holds the fields of an object that bindings on it depend on.
type BindingTarget struct {
	// Namespace is empty for a cluster-scoped kind.
	Namespace, UID string
	Owners         []Owner
}

// Owner names an object that another object belongs to.
type Owner struct {
	Type, Name string
	// UID is empty if unknown. Such an owner is ignored.
	UID string
}

// TargetOfObject returns the target of an object of any kind, read from its metadata, and whether the object is not in
// deletion.
func TargetOfObject(m *metav1.ObjectMeta) (t BindingTarget, alive bool) {
	t.Namespace, t.UID = m.Namespace, string(m.UID)
	for _, ref := range m.OwnerReferences {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err == nil {
			t.Owners = append(t.Owners, Owner{OpenFGAType(gv.Group, ref.Kind), ref.Name, string(ref.UID)})
		}
	}
	return t, m.DeletionTimestamp == nil
}

// TargetOfProject returns the target of a Project, and whether it is not in deletion. The only organization that owns a
// project is the recorded one. Owner references do not count, because a writer of owner references need not hold
// permissions on that organization. Without a record for the organization's current name, the project has no
// organization. A new organization of the same name therefore never gets the project.
func TargetOfProject(p *resourcemanagerv1alpha1.Project) (t BindingTarget, alive bool) {
	t, alive = TargetOfObject(&p.ObjectMeta)
	owner := Owner{Type: OpenFGAType(resourcemanagerv1alpha1.GroupVersion.Group, resourcemanagerv1alpha1.OrganizationKind), Name: p.Spec.OwnerRef.Name}
	if first := p.Status.Organization; first != nil && first.Name == owner.Name {
		owner.UID = first.UID
	}
	t.Owners = slices.DeleteFunc(t.Owners, func(o Owner) bool {
		if o.Type == owner.Type && o.Name == owner.Name && o.UID != owner.UID {
			owner.UID = "" // Whoever wrote the owner reference meant another organization.
		}
		return o.Type == owner.Type
	})
	t.Owners = append(t.Owners, owner)
	return t, alive
}

// liveRole returns the role, or nil if it is missing or in deletion.
func (o *Lookup) liveRole(namespace, name string) *iamv1alpha1.Role {
	if r := o.Role(namespace, name); r != nil && r.DeletionTimestamp == nil {
		return r
	}
	return nil
}

// storedParentNames returns the OpenFGA names of the object's stored parents, sorted. A parent is an existing owner with the UID
// of the owner reference, and of a parent kind of k.
func (o *Lookup) storedParentNames(k *RegisteredKind, object BindingTarget) []string {
	var all []string
	for _, owner := range object.Owners {
		if !slices.ContainsFunc(k.Parents, func(p *RegisteredKind) bool { return p.Type == owner.Type }) {
			continue
		}
		// An owner is cluster-scoped or in the namespace of the object.
		for _, namespace := range []string{object.Namespace, ""} {
			parent := ObjectName(owner.Type, namespace, owner.Name)
			if t, ok := o.Target(parent); ok && t.Namespace == namespace && owner.UID != "" && owner.UID == t.UID {
				all = append(all, parent)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
