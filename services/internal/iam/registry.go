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

// TargetsOf names the objects of the kind that a ProtectedResource registers, as those that roles can be had on.
func TargetsOf(spec iamv1alpha1.ProtectedResourceSpec) event.GroupResource {
	of := event.GroupResource{Group: spec.ServiceRef.Name, Resource: spec.Plural, Target: true}
	if of.Group == iamv1alpha1.CoreGroup {
		of.Group = ""
	}
	return of
}

// Follows says of such a name whether its objects are followed for what they say: they are known by that.
func Follows(of event.GroupResource) bool {
	of.Target = false
	return slices.ContainsFunc(kinds.IAM(), func(k kinds.Kind) bool { return k.GroupResource == of })
}

// Finding is what is to be said of a ProtectedResource.
type Finding struct {
	// Reason is that of its condition Ready: [iamv1alpha1.IAMSystemConfigured] if all is well.
	Reason, Message string
	// Registration is what is its own; nil if nothing is. Cycle says that a parent of it is refused, because that would be below it.
	Registration *iamv1alpha1.Registration
	Cycle        bool
}

// Registry is what all ProtectedResources make together. One that is bad harms itself alone: what
// can be kept of it is kept.
type Registry struct {
	types     map[string]*Kind
	resources map[string]*Kind
	// relations lead to the one permission that each stands for.
	relations map[string]string
	findings  map[string]Finding
	reserved  reserved
}

// Register judges ProtectedResources, in whatever order they come. Those of which is said that the model has no room for them
// are left out.
func Register(resources []*iamv1alpha1.ProtectedResource) *Registry {
	return RegisterIn(resources, func(string) bool { return true })
}

// RegisterIn does so, and leaves out the kinds whose types a model does not have.
func RegisterIn(resources []*iamv1alpha1.ProtectedResource, has func(typ string) bool) *Registry {
	all := ranked(resources)
	var in, out []*iamv1alpha1.ProtectedResource
	for _, p := range all {
		switch {
		case hasNoRoom(p):
			out = append(out, p)
		case has(Type(p.Spec.ServiceRef.Name, p.Spec.Kind)):
			in = append(in, p)
		}
	}
	r := register(in, reserve(all))
	r.leaveOut(out)
	return r
}

// register judges those whose claims are in order. What is held has precedence over what is new.
func register(resources []*iamv1alpha1.ProtectedResource, by reserved) *Registry {
	r := &Registry{
		types: map[string]*Kind{}, resources: map[string]*Kind{}, relations: map[string]string{}, findings: map[string]Finding{}, reserved: by,
	}
	var admitted []*Kind
	for _, resource := range resources {
		r.findings[resource.Name] = Finding{
			Reason: iamv1alpha1.IAMSystemConfigured, Message: "Resource is configured to be protected by the IAM system.",
		}
		if k := r.admit(resource); k != nil {
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

// admit lets a kind in that has a name of its own.
func (r *Registry) admit(p *iamv1alpha1.ProtectedResource) *Kind {
	if why := misnamed(&p.Spec); why != "" {
		r.find(p, iamv1alpha1.InvalidName, why)
		return nil
	}
	typ, resource := Type(p.Spec.ServiceRef.Name, p.Spec.Kind), Type(p.Spec.ServiceRef.Name, p.Spec.Plural)
	if other := r.rival(p, typ, resource); other != "" {
		r.find(p, iamv1alpha1.AlreadyRegistered, fmt.Sprintf(
			"ProtectedResource %s registers this kind or plural already: change or delete one of the two", other))
		return nil
	}
	k := &Kind{Resource: p, Type: typ}
	r.types[typ], r.resources[resource] = k, k
	return k
}

// rival is who has a type or a resource that somebody else claims, or had it when it was looked at last.
func (r *Registry) rival(p *iamv1alpha1.ProtectedResource, typ, resource string) string {
	if other := cmp.Or(r.types[typ], r.resources[resource]); other != nil {
		return other.Resource.Name
	}
	for _, holder := range []string{r.reserved.types[typ], r.reserved.resources[resource]} {
		if holder != "" && holder != p.Name && incumbency(p) == newcomer {
			return holder
		}
	}
	return ""
}

// addPermissions gives a kind those that no other permission's relation stands for: those that it holds, or the others.
func (r *Registry) addPermissions(k *Kind, held bool) {
	permissions, invalid := permissionsOf(&k.Resource.Spec)
	if len(invalid) > 0 {
		r.find(k.Resource, iamv1alpha1.InvalidName, fmt.Sprintf("permissions that cannot be any are left out: %.200q", strings.Join(invalid, ", ")))
	}
	holds := setOf(holding(k.Resource).Permissions)
	for _, permission := range permissions {
		relation := Relation(permission)
		other := r.relations[relation]
		if !held {
			other = cmp.Or(other, r.reserved.relations[relation])
		}
		switch {
		case holds[permission] != held, r.relations[relation] == permission: // Not now, or listed twice.
		case other == "" || other == permission:
			r.relations[relation] = permission
			k.Permissions = append(k.Permissions, permission)
		default:
			r.find(k.Resource, iamv1alpha1.PermissionCollision, fmt.Sprintf(
				"%s would be stored as the relation %s, as %s is: it is left out; choose another name", permission, relation, other))
		}
	}
	slices.Sort(k.Permissions)
}

// addParents links a kind to its parents, as long as that leads to no cycle: to those that it holds, or the others.
func (r *Registry) addParents(k *Kind, held bool) {
	var unknown []string
	holds := setOf(holding(k.Resource).Parents)
	for _, ref := range k.Resource.Spec.ParentResources {
		typ := Type(ref.APIGroup, ref.Kind)
		parent := r.types[typ]
		switch {
		case parent == nil:
			unknown = append(unknown, typ)
		case holds[typ] != held, slices.Contains(k.Parents, parent): // Not now, or listed twice.
		case r.leads(typ, k.Type, !held, map[string]bool{}):
			k.cycle = true
			r.find(k.Resource, iamv1alpha1.ParentCycle, parent.Type+
				" is below this kind, or this kind itself, and can be no parent of it: remove one of the two links")
		default:
			k.Parents, parent.children = append(k.Parents, parent), append(parent.children, k)
		}
	}
	if len(unknown) > 0 && !held {
		r.find(k.Resource, iamv1alpha1.ParentNotRegistered, "no ProtectedResource registers "+strings.Join(unknown, ", ")+
			": bindings on objects and on the kind act, bindings on such a parent do not")
	}
}

// leads says whether a type is another, or below it; also by links that are reserved, if these count.
func (r *Registry) leads(typ, to string, reserved bool, seen map[string]bool) bool {
	if typ == to {
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
	return slices.ContainsFunc(parents, func(parent string) bool { return r.leads(parent, to, reserved, seen) })
}

// leaveOut says of some that there is no room for them.
func (r *Registry) leaveOut(resources []*iamv1alpha1.ProtectedResource) {
	for _, p := range resources {
		r.findings[p.Name] = Finding{
			Reason: iamv1alpha1.LimitExceeded,
			Message: "the model has no room for this kind beside those in force: " +
				"raise the limits of types and bytes, here and in OpenFGA, or remove other kinds",
		}
	}
}

// find notes what is wrong. What is found first is told.
func (r *Registry) find(p *iamv1alpha1.ProtectedResource, reason, message string) {
	if r.findings[p.Name].Reason == iamv1alpha1.IAMSystemConfigured {
		r.findings[p.Name] = Finding{Reason: reason, Message: message}
	}
}

// wayTo are the kinds from a parent up to the one of a type; none if that is not above.
func (k *Kind) wayTo(typ string) []*Kind { return k.wayBeside(typ, map[*Kind]bool{}) }

// wayBeside is that way if it leads by no kind that was visited.
func (k *Kind) wayBeside(typ string, visited map[*Kind]bool) []*Kind {
	for _, parent := range k.Parents {
		if visited[parent] {
			continue
		}
		visited[parent] = true
		if parent.Type == typ {
			return []*Kind{parent}
		}
		if way := parent.wayBeside(typ, visited); way != nil {
			return append([]*Kind{parent}, way...)
		}
	}
	return nil
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
			f.Registration, f.Cycle = k.registration(), k.cycle
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
