package authz

import "slices"

// Explanation is the reason for an answer. For a refusal it lists the missing parts.
type Explanation struct {
	Proof

	Allowed bool
	// Membership is the subject's membership in the group that holds the role. It is empty if the role is not held by
	// a [Group].
	Membership Ref
	// InheritancePath is the chain of roles from the bound role to the role that includes the permission.
	InheritancePath []Ref
	// Path is the chain of objects from the object of the query to the scope of the bound role.
	Path []Scope

	// Unregistered is set if the permission does not apply to objects of the kind.
	Unregistered bool
	// NoSubject is set if no such active user or account exists. NoObject is set if no such object exists.
	NoSubject, NoObject bool
	// RolesWithoutPermission lists roles that the subject holds on the object or above it and that lack the permission.
	// The list has a limited length.
	RolesWithoutPermission []Proof
	// Truncated is set if there are more than [MaxOwners] owners, so that some were not followed.
	Truncated bool
}

// maxRolesWithoutPermission bounds Explanation.RolesWithoutPermission.
const maxRolesWithoutPermission = 20

// Explain decides a query and returns the reason.
func (x *Index) Explain(q Query) Explanation {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := scopeSet{from: map[Scope]Scope{}}
	why, allowed := x.decideWithScopes(q, &r)
	e := Explanation{Proof: why, Allowed: allowed}
	if allowed {
		e.Membership = x.membershipInGroup(q.User, why.Principal)
		e.InheritancePath = inheritancePath(x.roles[why.Role], q.Permission)
		e.Path = r.pathBetween(q.objectScope(), why.At)
		return e
	}
	e.NoObject, e.Truncated = q.Name != "" && x.kinds[q.Type] != nil && x.isObjectAbsent(&q), r.cut
	q.RequireExists = false
	k, _, registered := x.resolveQuery(&q)
	e.Unregistered = !registered
	e.NoSubject = q.User != "" && !x.users[q.User].isActive() || q.Account != "" && x.isInactiveAccount(q.Account)
	if registered {
		e.RolesWithoutPermission = x.heldRolesOn(q, k)
	}
	return e
}

// membershipInGroup returns a membership of a user in a group.
func (x *Index) membershipInGroup(user string, group Principal) Ref {
	for ref := range x.membershipsOf[user] {
		if m := x.memberships[ref]; group.Kind == Group && m.group == group.Ref && x.isEffectiveMembership(m) {
			return ref
		}
	}
	return Ref{}
}

// inheritancePath returns a shortest chain of inheritance from a role to a role that includes a permission.
func inheritancePath(r *role, permission string) []Ref {
	heir := map[Ref]Ref{r.Ref: {}}
	for queue := []*role{r}; len(queue) > 0; queue = queue[1:] {
		if slices.Contains(queue[0].included, permission) {
			return pathByLinks(heir, queue[0].Ref)
		}
		for _, inherited := range queue[0].inherits {
			if _, seen := heir[inherited.Ref]; !seen {
				heir[inherited.Ref] = queue[0].Ref
				queue = append(queue, inherited)
			}
		}
	}
	return nil
}

// pathBetween returns the path from an object to a scope above it. A path to a whole kind leads through an object of
// that kind, if one is above the object.
func (r *scopeSet) pathBetween(from, to Scope) []Scope {
	if !to.All {
		return pathByLinks(r.from, to)
	}
	above := from
	for object := range r.from {
		if object.Type == to.Type && (above.Type != to.Type || object.Compare(above) < 0) {
			above = object
		}
	}
	if above.Name == "" {
		return []Scope{to}
	}
	return append(pathByLinks(r.from, above), to)
}

// pathByLinks follows the links from to back to the start, and returns the path in forward order.
func pathByLinks[T comparable](links map[T]T, to T) []T {
	var none T
	path := []T{to}
	for at, ok := links[to]; ok && at != none; at, ok = links[at] {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}

// heldRolesOn lists roles that the subject holds on the object of the query or above it. The list has a limited
// length.
func (x *Index) heldRolesOn(q Query, k *registeredKind) []Proof {
	var r scopeSet
	x.collectScopesOfQuery(&r, k, &q)
	grants := r.effectiveGrants()
	var had []Proof
	for _, p := range x.principalsOfSubject(q.Subject) {
		for g := range p.grantsAmong(grants) {
			if len(had) == maxRolesWithoutPermission {
				return had
			}
			had = append(had, Proof{p.grants.bindingOfGrant(g).Ref, g.role.Ref, p.Principal, g.at.Scope})
		}
	}
	return had
}
