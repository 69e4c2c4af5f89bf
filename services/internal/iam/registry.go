package iam

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// Kind is a registered kind.
type Kind struct {
	// Resource is the ProtectedResource that registers it.
	Resource *iamv1alpha1.ProtectedResource
	// Type is that of its objects.
	Type string
	// Permissions are its own, sorted.
	Permissions []string
	// Parents are the kinds whose objects may be parents.
	Parents []*Kind

	children []*Kind
	// cycle says that a parent was refused.
	cycle bool
}

// Finding is what is to be said of a ProtectedResource.
type Finding struct {
	// Reason is that of its condition Ready: [iamv1alpha1.IAMSystemConfigured] if all is well.
	Reason, Message string
	// Registered says that the kind is its own; Cycle that a parent of it is refused, because that would be below it.
	Registered, Cycle bool
}

// Registry is what all ProtectedResources make together. One that is bad harms itself alone: what
// can be kept of it is kept.
type Registry struct {
	types     map[string]*Kind
	resources map[string]*Kind
	// relations lead to the one permission that each stands for.
	relations map[string]string
	findings  map[string]Finding
}

// Register judges ProtectedResources, in whatever order they come.
func Register(resources []*iamv1alpha1.ProtectedResource) *Registry {
	return register(ranked(resources))
}

// register does so for those whose claims are in order.
func register(resources []*iamv1alpha1.ProtectedResource) *Registry {
	r := &Registry{
		types: map[string]*Kind{}, resources: map[string]*Kind{}, relations: map[string]string{}, findings: map[string]Finding{},
	}
	for _, resource := range resources {
		r.findings[resource.Name] = Finding{
			Reason: iamv1alpha1.IAMSystemConfigured, Message: "Resource is configured to be protected by the IAM system.",
		}
		if r.admit(resource) {
			r.addPermissions(r.types[Type(resource.Spec.ServiceRef.Name, resource.Spec.Kind)])
		}
	}
	for _, resource := range slices.SortedStableFunc(slices.Values(resources), func(a, b *iamv1alpha1.ProtectedResource) int {
		return cmp.Compare(seniority(a), seniority(b))
	}) {
		if k := r.types[Type(resource.Spec.ServiceRef.Name, resource.Spec.Kind)]; k != nil && k.Resource == resource {
			r.addParents(k)
		}
	}
	return r
}

// ranked are those that are not in deletion, the best claims first. Who is in force as it is stays
// so; of others the older comes first.
func ranked(resources []*iamv1alpha1.ProtectedResource) []*iamv1alpha1.ProtectedResource {
	alive := slices.DeleteFunc(slices.Clone(resources), func(p *iamv1alpha1.ProtectedResource) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(alive, func(a, b *iamv1alpha1.ProtectedResource) int {
		return cmp.Or(cmp.Compare(incumbency(a), incumbency(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return alive
}

// Incumbencies are less for those with better claims.
const (
	// edited is of who has a kind, and has changed since.
	edited = iota + 1
	// newcomer is of who has no kind yet.
	newcomer
)

// incumbency is less for those whose kind is in force: first who has it as he is, then who has changed since. Whatever else is
// said of one, such as that OpenFGA gives no answer, takes no kind away.
func incumbency(p *iamv1alpha1.ProtectedResource) int {
	switch registered := meta.FindStatusCondition(p.Status.Conditions, iamv1alpha1.Registered); {
	case registered == nil || registered.Status != metav1.ConditionTrue:
		return newcomer
	case registered.ObservedGeneration != p.Generation:
		return edited
	}
	return 0
}

// seniority is the order in which parents are linked: those that are in force come before one that was refused.
func seniority(p *iamv1alpha1.ProtectedResource) int {
	rank := incumbency(p)
	registered := meta.FindStatusCondition(p.Status.Conditions, iamv1alpha1.Registered)
	if rank < newcomer && registered.Reason == iamv1alpha1.ParentCycle {
		rank = newcomer
	}
	return rank
}

// admit lets a kind in that has a name of its own.
func (r *Registry) admit(p *iamv1alpha1.ProtectedResource) bool {
	if why := misnamed(&p.Spec); why != "" {
		r.find(p, iamv1alpha1.InvalidName, why)
		return false
	}
	typ, resource := Type(p.Spec.ServiceRef.Name, p.Spec.Kind), Type(p.Spec.ServiceRef.Name, p.Spec.Plural)
	if other := cmp.Or(r.types[typ], r.resources[resource]); other != nil {
		r.find(p, iamv1alpha1.AlreadyRegistered, fmt.Sprintf("ProtectedResource %s registers this kind or plural already: change or delete one of the two",
			other.Resource.Name))
		return false
	}
	k := &Kind{Resource: p, Type: typ}
	r.types[typ], r.resources[resource] = k, k
	return true
}

// addPermissions gives a kind those that no other permission's relation stands for.
func (r *Registry) addPermissions(k *Kind) {
	permissions, invalid := permissionsOf(&k.Resource.Spec)
	if len(invalid) > 0 {
		r.find(k.Resource, iamv1alpha1.InvalidName, fmt.Sprintf("permissions that cannot be any are left out: %.200q", strings.Join(invalid, ", ")))
	}
	for _, permission := range permissions {
		relation := Relation(permission)
		switch r.relations[relation] {
		case permission: // Listed twice.
		case "":
			r.relations[relation] = permission
			k.Permissions = append(k.Permissions, permission)
		default:
			r.find(k.Resource, iamv1alpha1.PermissionCollision, fmt.Sprintf(
				"%s would be stored as the relation %s, as %s is: it is left out; choose another name", permission, relation, r.relations[relation]))
		}
	}
	slices.Sort(k.Permissions)
}

// addParents links a kind to its parents, as long as that leads to no cycle.
func (r *Registry) addParents(k *Kind) {
	var unknown []string
	for _, ref := range k.Resource.Spec.ParentResources {
		parent := r.types[Type(ref.APIGroup, ref.Kind)]
		switch {
		case parent == nil:
			unknown = append(unknown, Type(ref.APIGroup, ref.Kind))
		case slices.Contains(k.Parents, parent): // Listed twice.
		case k.isAbove(parent):
			k.cycle = true
			r.find(k.Resource, iamv1alpha1.ParentCycle, parent.Type+
				" is below this kind, or this kind itself, and can be no parent of it: remove one of the two links")
		default:
			k.Parents, parent.children = append(k.Parents, parent), append(parent.children, k)
		}
	}
	if len(unknown) > 0 {
		r.find(k.Resource, iamv1alpha1.ParentNotRegistered, "no ProtectedResource registers "+strings.Join(unknown, ", ")+
			": bindings on objects and on the kind act, bindings on such a parent do not")
	}
}

// find notes what is wrong. What is found first is told.
func (r *Registry) find(p *iamv1alpha1.ProtectedResource, reason, message string) {
	if r.findings[p.Name].Reason == iamv1alpha1.IAMSystemConfigured {
		r.findings[p.Name] = Finding{Reason: reason, Message: message}
	}
}

// isAbove says whether a kind is another, or an ancestor of it.
func (k *Kind) isAbove(other *Kind) bool {
	below := map[*Kind]bool{}
	k.collect(below)
	return below[other]
}

// AtAndBelow are the permissions that can be held on objects of the kind: its own and those of all kinds below, sorted.
func (k *Kind) AtAndBelow() []string {
	below := map[*Kind]bool{}
	k.collect(below)
	var all []string
	for b := range below {
		all = append(all, b.Permissions...)
	}
	slices.Sort(all)
	return all
}

// collect adds a kind and all below.
func (k *Kind) collect(below map[*Kind]bool) {
	if below[k] {
		return
	}
	below[k] = true
	for _, child := range k.children {
		child.collect(below)
	}
}

// Finding is what is to be said of a ProtectedResource; of one that was not registered, nothing.
func (r *Registry) Finding(name string) Finding {
	f := r.findings[name]
	for _, k := range r.types {
		if k.Resource.Name == name {
			f.Registered, f.Cycle = true, k.cycle
		}
	}
	return f
}

// Kinds are all that are registered, in order of their types.
func (r *Registry) Kinds() []*Kind {
	return slices.SortedFunc(maps.Values(r.types), func(a, b *Kind) int { return strings.Compare(a.Type, b.Type) })
}

// Kind finds the kind of a type.
func (r *Registry) Kind(typ string) (*Kind, bool) {
	k, ok := r.types[typ]
	return k, ok
}

// Relation is the one that stands for a permission, if there is this permission.
func (r *Registry) Relation(permission string) (relation string, ok bool) {
	relation = Relation(permission)
	return relation, r.relations[relation] == permission && permission != ""
}

// Requested finds the kind of a request, and the permission that it needs.
func (r *Registry) Requested(apiGroup, plural, subresource, verb string) (k *Kind, permission string, ok bool) {
	if k = r.resources[Type(apiGroup, plural)]; k == nil {
		return nil, "", false
	}
	if k.inherits(subresource) {
		subresource = ""
	}
	permission = Permission(apiGroup, plural, subresource, verb)
	_, known := r.Relation(permission)
	return k, permission, known
}

// inherits says whether a subresource needs no permissions of its own.
func (k *Kind) inherits(subresource string) bool {
	spec := &k.Resource.Spec
	return subresource != "" && spec.UnlistedSubresources == iamv1alpha1.SubresourcesInherit &&
		!slices.ContainsFunc(k.Permissions, func(p string) bool {
			return strings.HasPrefix(p, Permission(spec.ServiceRef.Name, spec.Plural, subresource, ""))
		})
}
