package iam

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// RegisteredKind is a kind that a ProtectedResource registers.
type RegisteredKind struct {
	// Resource is the ProtectedResource that registers the kind.
	Resource *iamv1alpha1.ProtectedResource
	// Type is the OpenFGA type of its objects.
	Type string
	// Permissions lists the permissions of this kind, sorted, without those of the kinds below it.
	Permissions []string
	// Parents lists the kinds whose objects can be parents.
	Parents []*RegisteredKind

	children []*RegisteredKind
	// cycle means that a parent was refused because of a cycle.
	cycle bool
}

// TargetResource returns the group and resource of the kind that a ProtectedResource registers, marked as a target
// kind.
func TargetResource(spec iamv1alpha1.ProtectedResourceSpec) event.GroupResource {
	of := event.GroupResource{Group: spec.ServiceRef.Name, Resource: spec.Plural, Target: true}
	if of.Group == iamv1alpha1.CoreGroup {
		of.Group = ""
	}
	return of
}

// IsIAMResource reports whether a resource is one of IAM's own kinds. Their objects are published completely.
func IsIAMResource(of event.GroupResource) bool {
	of.Target = false
	return slices.ContainsFunc(kinds.IAMKinds(), func(k kinds.Kind) bool { return k.GroupResource == of })
}

// RegistrationFinding holds the result of the registration of one ProtectedResource.
type RegistrationFinding struct {
	// Reason is the reason of the condition Ready. It is [iamv1alpha1.IAMSystemConfigured] if there is no problem.
	Reason, Message string
	// Registration holds the registered entries, or nil. Cycle means that a parent was refused because it is below
	// this kind.
	Registration *iamv1alpha1.Registration
	Cycle        bool
}

// Registry holds the combined registration of all ProtectedResources. An invalid resource does not affect other
// resources, and its valid parts are still registered.
type Registry struct {
	types     map[string]*RegisteredKind
	resources map[string]*RegisteredKind
	// relations maps each relation to its one permission.
	relations map[string]string
	findings  map[string]RegistrationFinding
	reserved  reservations
}

// NewRegistry returns the registry of ProtectedResources in any order. It omits resources whose status reports that
// the model has no room.
func NewRegistry(resources []*iamv1alpha1.ProtectedResource) *Registry {
	return NewRegistryForTypes(resources, func(string) bool { return true })
}

// NewRegistryForTypes returns the same as [NewRegistry], but omits kinds for which has returns false.
func NewRegistryForTypes(resources []*iamv1alpha1.ProtectedResource, has func(typ string) bool) *Registry {
	all := rankLiveResources(resources)
	var in, out []*iamv1alpha1.ProtectedResource
	for _, p := range all {
		switch {
		case isOverBudget(p):
			out = append(out, p)
		case has(OpenFGAType(p.Spec.ServiceRef.Name, p.Spec.Kind)):
			in = append(in, p)
		}
	}
	r := buildRegistry(in, readReservations(all))
	r.addLimitFindings(out)
	return r
}

// buildRegistry returns the registry of resources, which must be in the order of [rankLiveResources]. Permissions and
// parents recorded in a status have precedence over new ones.
func buildRegistry(resources []*iamv1alpha1.ProtectedResource, by reservations) *Registry {
	r := &Registry{
		types: map[string]*RegisteredKind{}, resources: map[string]*RegisteredKind{}, relations: map[string]string{},
		findings: map[string]RegistrationFinding{}, reserved: by,
	}
	var admitted []*RegisteredKind
	for _, resource := range resources {
		r.findings[resource.Name] = RegistrationFinding{
			Reason: iamv1alpha1.IAMSystemConfigured, Message: "Resource is configured to be protected by the IAM system.",
		}
		if k := r.admitKind(resource); k != nil {
			admitted = append(admitted, k)
		}
	}
	for _, held := range []bool{true, false} {
		for _, k := range admitted {
			r.addPermissions(k, held)
		}
	}
	for _, held := range []bool{true, false} {
		for _, k := range admitted {
			r.addParents(k, held)
		}
	}
	return r
}

// admitKind registers the kind of p if its names are valid and free. Otherwise it returns nil and adds a finding.
func (r *Registry) admitKind(p *iamv1alpha1.ProtectedResource) *RegisteredKind {
	if why := invalidNameReason(&p.Spec); why != "" {
		r.addFinding(p, iamv1alpha1.InvalidName, why)
		return nil
	}
	typ, resource := OpenFGAType(p.Spec.ServiceRef.Name, p.Spec.Kind), OpenFGAType(p.Spec.ServiceRef.Name, p.Spec.Plural)
	if other := r.conflictingResource(p, typ, resource); other != "" {
		r.addFinding(p, iamv1alpha1.AlreadyRegistered, fmt.Sprintf(
			"ProtectedResource %s registers this kind or plural already: change or delete one of the two", other))
		return nil
	}
	k := &RegisteredKind{Resource: p, Type: typ}
	r.types[typ], r.resources[resource] = k, k
	return k
}

// conflictingResource returns the name of another resource that has registered the type or the plural of p, or records
// one of them in its status. It returns "" if there is none.
func (r *Registry) conflictingResource(p *iamv1alpha1.ProtectedResource, typ, resource string) string {
	if other := cmp.Or(r.types[typ], r.resources[resource]); other != nil {
		return other.Resource.Name
	}
	for _, holder := range []string{r.reserved.types[typ], r.reserved.resources[resource]} {
		if holder != "" && holder != p.Name && registrationRank(p) == unregisteredRank {
			return holder
		}
	}
	return ""
}

// addPermissions registers the permissions whose relation is free. If recorded is true, it only adds the permissions
// that the status records. If recorded is false, it only adds the permissions that the status does not record.
func (r *Registry) addPermissions(k *RegisteredKind, recorded bool) {
	permissions, invalid := specPermissions(&k.Resource.Spec)
	if len(invalid) > 0 {
		r.addFinding(k.Resource, iamv1alpha1.InvalidName, fmt.Sprintf("permissions that cannot be any are left out: %.200q", strings.Join(invalid, ", ")))
	}
	holds := stringSetOf(claimedRegistration(k.Resource).Permissions)
	for _, permission := range permissions {
		relation := RelationOf(permission)
		other := r.relations[relation]
		if !recorded {
			other = cmp.Or(other, r.reserved.relations[relation])
		}
		switch {
		// addPermissions runs once for recorded permissions and once for the others: the other run handles this one.
		// Or the permission is listed twice.
		case holds[permission] != recorded, r.relations[relation] == permission:
		case other == "" || other == permission:
			r.relations[relation] = permission
			k.Permissions = append(k.Permissions, permission)
		default:
			r.addFinding(k.Resource, iamv1alpha1.PermissionCollision, fmt.Sprintf(
				"%s would be stored as the relation %s, as %s is: it is left out; choose another name", permission, relation, other))
		}
	}
	slices.Sort(k.Permissions)
}

// addParents links a kind to its parents and refuses a link that closes a cycle. If recorded is true, it only adds
// the links that the status records. If recorded is false, it only adds the links that the status does not record.
func (r *Registry) addParents(k *RegisteredKind, recorded bool) {
	var unknown []string
	holds := stringSetOf(claimedRegistration(k.Resource).Parents)
	for _, ref := range k.Resource.Spec.ParentResources {
		typ := OpenFGAType(ref.APIGroup, ref.Kind)
		parent := r.types[typ]
		switch {
		case parent == nil:
			unknown = append(unknown, typ)
		// As in addPermissions, the other run handles this parent, or the parent is listed twice.
		case holds[typ] != recorded, slices.Contains(k.Parents, parent):
		case r.isBelow(typ, k.Type, !recorded, map[string]bool{}):
			k.cycle = true
			r.addFinding(k.Resource, iamv1alpha1.ParentCycle, parent.Type+
				" is below this kind, or this kind itself, and can be no parent of it: remove one of the two links")
		default:
			k.Parents, parent.children = append(k.Parents, parent), append(parent.children, k)
		}
	}
	if len(unknown) > 0 && !recorded {
		r.addFinding(k.Resource, iamv1alpha1.ParentNotRegistered, "no ProtectedResource registers "+strings.Join(unknown, ", ")+
			": bindings on objects and on the kind take effect, bindings on such a parent do not")
	}
}

// isBelow reports whether typ equals to or is below it. If reserved is true, links recorded in statuses count too.
func (r *Registry) isBelow(typ, ancestor string, reserved bool, seen map[string]bool) bool {
	if typ == ancestor {
		return true
	}
	if seen[typ] {
		return false
	}
	seen[typ] = true
	var parents []string
	if k := r.types[typ]; k != nil {
		for _, parent := range k.Parents {
			parents = append(parents, parent.Type)
		}
	}
	if reserved {
		parents = append(parents, r.reserved.parents[typ]...)
	}
	return slices.ContainsFunc(parents, func(parent string) bool { return r.isBelow(parent, ancestor, reserved, seen) })
}

// addLimitFindings adds the finding that the model has no room for the resources.
func (r *Registry) addLimitFindings(resources []*iamv1alpha1.ProtectedResource) {
	for _, p := range resources {
		r.findings[p.Name] = RegistrationFinding{
			Reason: iamv1alpha1.LimitExceeded,
			Message: "the model has no room for this kind beside those in force: " +
				"raise the limits of types and bytes, here and in OpenFGA, or remove other kinds",
		}
	}
}

// addFinding records a problem. Only the first problem of a resource is kept.
func (r *Registry) addFinding(p *iamv1alpha1.ProtectedResource, reason, message string) {
	if r.findings[p.Name].Reason == iamv1alpha1.IAMSystemConfigured {
		r.findings[p.Name] = RegistrationFinding{Reason: reason, Message: message}
	}
}

// pathTo returns the kinds from a parent of k up to the kind of a type. It returns nil if that kind is not above k.
func (k *RegisteredKind) pathTo(typ string) []*RegisteredKind {
	return k.pathAvoiding(typ, map[*RegisteredKind]bool{})
}

// pathAvoiding implements [RegisteredKind.pathTo]. It skips visited kinds.
func (k *RegisteredKind) pathAvoiding(typ string, visited map[*RegisteredKind]bool) []*RegisteredKind {
	for _, parent := range k.Parents {
		if visited[parent] {
			continue
		}
		visited[parent] = true
		if parent.Type == typ {
			return []*RegisteredKind{parent}
		}
		if way := parent.pathAvoiding(typ, visited); way != nil {
			return append([]*RegisteredKind{parent}, way...)
		}
	}
	return nil
}

// GrantablePermissions returns the permissions that a role can give on objects of the kind, sorted. These are the
// permissions of the kind and of all kinds below it.
func (k *RegisteredKind) GrantablePermissions() []string {
	below := map[*RegisteredKind]bool{}
	k.collectDescendants(below)
	var all []string
	for b := range below {
		all = append(all, b.Permissions...)
	}
	slices.Sort(all)
	return all
}

// collectDescendants adds k and all kinds below it to below.
func (k *RegisteredKind) collectDescendants(below map[*RegisteredKind]bool) {
	if below[k] {
		return
	}
	below[k] = true
	for _, child := range k.children {
		child.collectDescendants(below)
	}
}

// FindingFor returns the finding for a ProtectedResource. It is empty if the registry was built without this resource.
func (r *Registry) FindingFor(name string) RegistrationFinding {
	f := r.findings[name]
	for _, k := range r.types {
		if k.Resource.Name == name {
			f.Registration, f.Cycle = k.newRegistration(), k.cycle
		}
	}
	return f
}

// Kinds returns all registered kinds, ordered by type.
func (r *Registry) Kinds() []*RegisteredKind {
	return slices.SortedFunc(maps.Values(r.types), func(a, b *RegisteredKind) int { return strings.Compare(a.Type, b.Type) })
}

// Kind returns the kind of a type.
func (r *Registry) Kind(typ string) (*RegisteredKind, bool) {
	k, ok := r.types[typ]
	return k, ok
}

// RelationOf returns the relation of a permission and reports whether the permission is registered.
func (r *Registry) RelationOf(permission string) (relation string, ok bool) {
	relation = RelationOf(permission)
	return relation, r.relations[relation] == permission && permission != ""
}

// ResolveRequest returns the kind of a request and the permission that the request needs. ok is false if the kind or
// the permission is not registered.
func (r *Registry) ResolveRequest(apiGroup, plural, subresource, verb string) (k *RegisteredKind, permission string, ok bool) {
	if k = r.resources[OpenFGAType(apiGroup, plural)]; k == nil {
		return nil, "", false
	}
	if k.inheritsSubresource(subresource) {
		subresource = ""
	}
	permission = PermissionName(apiGroup, plural, subresource, verb)
	_, known := r.RelationOf(permission)
	return k, permission, known
}

// inheritsSubresource reports whether a subresource uses the permissions of its resource.
func (k *RegisteredKind) inheritsSubresource(subresource string) bool {
	spec := &k.Resource.Spec
	return subresource != "" && spec.UnlistedSubresources == iamv1alpha1.SubresourcesInherit &&
		!slices.ContainsFunc(k.Permissions, func(p string) bool {
			return strings.HasPrefix(p, PermissionName(spec.ServiceRef.Name, spec.Plural, subresource, ""))
		})
}
