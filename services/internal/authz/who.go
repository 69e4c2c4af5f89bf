package authz

import (
	"cmp"
	"maps"
	"slices"
)

// AllowedPrincipal is a principal for which a query is allowed.
type AllowedPrincipal struct {
	Principal Principal
	// Membership is the user's membership in the group that holds the role; empty if no group holds it.
	Membership Ref
	Proof      Proof
}

// Compare orders principals by kind, name and UID.
func (p Principal) Compare(other Principal) int {
	return cmp.Or(cmp.Compare(p.Kind, other.Kind), p.Ref.Compare(other.Ref), cmp.Compare(p.UID, other.UID))
}

// Compare orders names by namespace and name.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name))
}

// Compare orders scopes by type and name. A whole kind comes before its objects.
func (p Scope) Compare(other Scope) int {
	if p.All != other.All && p.Type == other.Type {
		if p.All {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(p.Type, other.Type), p.Ref.Compare(other.Ref))
}

// ListAllowedPrincipals lists the principals for which a query is allowed, without duplicates. It lists groups and
// also their members. It stops at the given number of principals; more is true if there are others.
func (x *Index) ListAllowedPrincipals(q Query, limit int) (holders []AllowedPrincipal, more bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	k, permission, ok := x.resolveQuery(&q)
	if !ok {
		return nil, false
	}
	var r scopeSet
	x.collectScopesOfQuery(&r, k, &q)
	found := map[Principal]AllowedPrincipal{}
	for at := range r.allScopes {
		for _, g := range at.grants {
			if g.hasPermission(permission) && !x.addHoldersOfGrant(g, found, limit) {
				more = true
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b AllowedPrincipal) int { return a.Principal.Compare(b.Principal) }), more
}

// addHoldersOfGrant adds the holders of a grant. It returns false if the limit was reached.
func (x *Index) addHoldersOfGrant(g *grant, found map[Principal]AllowedPrincipal, limit int) (all bool) {
	for _, b := range g.bindings {
		for _, p := range b.principals {
			why := Proof{b.Ref, g.role.Ref, p.Principal, g.at.Scope}
			if _, known := found[p.Principal]; known || !x.isActivePrincipal(p.Principal) {
				continue // The group's members were added together with the group.
			}
			if !addHolder(found, AllowedPrincipal{p.Principal, Ref{}, why}, limit) {
				return false
			}
			if p.Kind == Group && !x.addMembersOfGroup(p.Ref, why, found, limit) {
				return false
			}
		}
	}
	return true
}

// addMembersOfGroup adds the members of a group. It returns false if the limit was reached.
func (x *Index) addMembersOfGroup(group Ref, why Proof, found map[Principal]AllowedPrincipal, limit int) (all bool) {
	// Sorted, so that a truncated list is always the same.
	for _, ref := range slices.SortedFunc(maps.Keys(x.membershipsIn[group]), Ref.Compare) {
		m := x.memberships[ref]
		if x.isEffectiveMembership(m) && !addHolder(found, AllowedPrincipal{Principal{User, Ref{Name: m.user}, x.users[m.user].uid}, ref, why}, limit) {
			return false
		}
	}
	return true
}

// addHolder adds a holder. It returns false if the limit was already reached.
func addHolder(found map[Principal]AllowedPrincipal, h AllowedPrincipal, limit int) bool {
	if _, known := found[h.Principal]; known {
		return true
	}
	if len(found) == limit {
		return false
	}
	found[h.Principal] = h
	return true
}
