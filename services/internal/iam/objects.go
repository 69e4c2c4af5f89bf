package iam

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
)

// DeclaredObjects provides the declared objects. Its functions return nil or false for a missing object. They may
// return objects in deletion; package iam treats these as deleted.
type DeclaredObjects struct {
	Registry *Registry
	// Inheritance caches the permissions of roles. With nil, nothing is cached.
	Inheritance *InheritanceCache

	Role           func(namespace, name string) *iamv1alpha1.Role
	Group          func(namespace, name string) *iamv1alpha1.Group
	User           func(name string) *iamv1alpha1.User
	ServiceAccount func(name string) *iamv1alpha1.ServiceAccount
	// Target returns an object of a registered kind by its OpenFGA name (see [OpenFGAObject]).
	Target func(object string) (BindingTarget, bool)
	// Trusted reports whether bindings on objects of a kind take effect although the kind is not watched. Nil means
	// that no kind is trusted.
	Trusted func(typ string) bool
	// Scope reports whether a kind is namespaced and whether its objects are watched. If it is nil,
	// [DeclaredObjects.InvalidTargetReason] returns TargetNotFound in place of TargetKindNotRecognized and
	// TargetNamespaceMissing.
	Scope func(typ string) (namespaced, watched bool)

	// Inactive reports whether a subject of [UserSubject] or [ServiceAccountSubject] is deactivated.
	// [DeclaredObjects.BuildCheck] requires it. In other functions, nil means that no subject is inactive.
	Inactive func(subject string) bool

	// RoleOf returns the Role of a [RoleObject]. GroupOf returns the Group of a [GroupObject].
	RoleOf  func(object string) *iamv1alpha1.Role
	GroupOf func(object string) *iamv1alpha1.Group
	// BindingsOn lists the bindings on a target, which is named as by [TargetOfBinding].
	BindingsOn func(target string) []*iamv1alpha1.PolicyBinding
	// BindingsBy lists the bindings with this [RoleTargetIndexKey].
	BindingsBy func(index string) []*iamv1alpha1.PolicyBinding
	// MembershipsOf lists the memberships of a group.
	MembershipsOf func(namespace, name string) []*iamv1alpha1.GroupMembership
}

// BindingTarget holds the fields of an object that affect bindings on it.
type BindingTarget struct {
	// Namespace is empty for a cluster-scoped kind.
	Namespace, UID string
	Owners         []Owner
}

// Owner names an object that owns another object.
type Owner struct {
	Type, Name string
	// UID is empty if it is unknown. Such an owner is ignored.
	UID string
}

// TargetOfObject returns the binding target of an object with this metadata. alive reports whether the object is not
// in deletion.
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

// TargetOfProject returns the binding target of a Project. alive reports whether the Project is not in deletion.
//
// The organization of a project is the one that its status records, and only if the record matches spec.ownerRef. So a
// new organization with the same name does not get the project. Owner references to organizations are ignored, because
// their author may have no permissions on that organization.
func TargetOfProject(p *resourcemanagerv1alpha1.Project) (t BindingTarget, alive bool) {
	t, alive = TargetOfObject(&p.ObjectMeta)
	owner := Owner{Type: OpenFGAType(resourcemanagerv1alpha1.GroupVersion.Group, resourcemanagerv1alpha1.OrganizationKind), Name: p.Spec.OwnerRef.Name}
	if first := p.Status.Organization; first != nil && first.Name == owner.Name {
		owner.UID = first.UID
	}
	t.Owners = slices.DeleteFunc(t.Owners, func(o Owner) bool {
		if o.Type == owner.Type && o.Name == owner.Name && o.UID != owner.UID {
			// The owner reference names another organization with the same name, so the project has none.
			owner.UID = ""
		}
		return o.Type == owner.Type
	})
	t.Owners = append(t.Owners, owner)
	return t, alive
}

// liveRole returns the role, or nil if it is missing or in deletion.
func (o *DeclaredObjects) liveRole(namespace, name string) *iamv1alpha1.Role {
	if r := o.Role(namespace, name); r != nil && r.DeletionTimestamp == nil {
		return r
	}
	return nil
}

// storedParentNames returns the OpenFGA names of the object's parents, sorted. A parent is an owner that exists, has
// the UID in the owner reference, and is of a parent kind of k.
func (o *DeclaredObjects) storedParentNames(k *RegisteredKind, object BindingTarget) []string {
	var all []string
	for _, owner := range object.Owners {
		if !slices.ContainsFunc(k.Parents, func(p *RegisteredKind) bool { return p.Type == owner.Type }) {
			continue
		}
		// An owner is cluster-scoped or in the namespace of the object.
		for _, namespace := range []string{object.Namespace, ""} {
			parent := OpenFGAObject(owner.Type, namespace, owner.Name)
			if t, ok := o.Target(parent); ok && t.Namespace == namespace && owner.UID != "" && owner.UID == t.UID {
				all = append(all, parent)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
