package iam

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
)

// Objects finds the declared objects: nil, or false, where there is none. Those in deletion may be
// given or not, they count as gone.
type Objects struct {
	Registry *Registry
	// Inheritance remembers what the roles give; nil if nothing is to be remembered.
	Inheritance *Inheritance

	Role           func(namespace, name string) *iamv1alpha1.Role
	Group          func(namespace, name string) *iamv1alpha1.Group
	User           func(name string) *iamv1alpha1.User
	ServiceAccount func(name string) *iamv1alpha1.ServiceAccount
	// Target finds an object of a registered kind by the name that [Object] gives it.
	Target func(object string) (Target, bool)
	// Trusted says of a kind that nobody follows whether bindings on its objects act all the same; nil if none do.
	Trusted func(typ string) bool
	// Scope says of a kind whether its objects are in namespaces, and whether anybody follows them; nil if nobody is to be told.
	Scope func(typ string) (namespaced, followed bool)

	// Inactive says of a [User] or a [ServiceAccount] that asks, or of an account that is known by its UID alone, whether it is one
	// that may not act; nil if nobody asks.
	Inactive func(subject string) bool

	// RoleOf and GroupOf find what [RoleObject] and [GroupObject] stand for.
	RoleOf  func(object string) *iamv1alpha1.Role
	GroupOf func(object string) *iamv1alpha1.Group
	// BindingsOn finds those on what [TargetOf] names.
	BindingsOn func(target string) []*iamv1alpha1.PolicyBinding
	// BindingsBy finds those with this [GrantIndex].
	BindingsBy func(index string) []*iamv1alpha1.PolicyBinding
	// MembershipsOf finds those of a group.
	MembershipsOf func(namespace, name string) []*iamv1alpha1.GroupMembership
}

// Target is what matters of an object that bindings can be on.
type Target struct {
	// Namespace is empty if the kind has none.
	Namespace, UID string
	Owners         []Owner
}

// Owner is an object that another one belongs to.
type Owner struct {
	Type, Name string
	// UID is empty if it is not known: then it is none.
	UID string
}

// TargetOfObject is an object of any kind, by its metadata alone.
func TargetOfObject(m *metav1.ObjectMeta) (t Target, alive bool) {
	t.Namespace, t.UID = m.Namespace, string(m.UID)
	for _, ref := range m.OwnerReferences {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err == nil {
			t.Owners = append(t.Owners, Owner{Type(gv.Group, ref.Kind), ref.Name, string(ref.UID)})
		}
	}
	return t, m.DeletionTimestamp == nil
}

// TargetOfProject is a Project. It belongs to its organization, whether or not an owner reference says so, and to no other:
// who may set owner references need not be allowed to give it to one. That is the one which is recorded in it: as long as none
// is, or one of another name, it belongs to nobody, so that no other of the name ever gets it.
func TargetOfProject(p *resourcemanagerv1alpha1.Project) (t Target, alive bool) {
	t, alive = TargetOfObject(&p.ObjectMeta)
	owner := Owner{Type: Type(resourcemanagerv1alpha1.GroupVersion.Group, resourcemanagerv1alpha1.OrganizationKind), Name: p.Spec.OwnerRef.Name}
	if first := p.Status.Organization; first != nil && first.Name == owner.Name {
		owner.UID = first.UID
	}
	t.Owners = slices.DeleteFunc(t.Owners, func(o Owner) bool {
		if o.Type == owner.Type && o.Name == owner.Name && o.UID != owner.UID {
			owner.UID = "" // Whoever says which one must say so of this one.
		}
		return o.Type == owner.Type
	})
	t.Owners = append(t.Owners, owner)
	return t, alive
}

// role finds one that is not in deletion.
func (o *Objects) role(namespace, name string) *iamv1alpha1.Role {
	if r := o.Role(namespace, name); r != nil && r.DeletionTimestamp == nil {
		return r
	}
	return nil
}

// parents are the stored parents of an object: its owners of a kind that is registered as a parent.
func (o *Objects) parents(k *Kind, object Target) []string {
	var all []string
	for _, owner := range object.Owners {
		if !slices.ContainsFunc(k.Parents, func(p *Kind) bool { return p.Type == owner.Type }) {
			continue
		}
		// An owner is in the namespace of the object, or in none.
		for _, namespace := range []string{object.Namespace, ""} {
			parent := Object(owner.Type, namespace, owner.Name)
			if t, ok := o.Target(parent); ok && t.Namespace == namespace && owner.UID != "" && owner.UID == t.UID {
				all = append(all, parent)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
