package infer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// RoleReason is one way in which an identity has a role.
type RoleReason struct {
	// Source is the binding that grants the role, and Subject its matching entry. Source is explicit, or a generated
	// binding that still exists although nothing implies it any more.
	Source  *Binding
	Subject rbacv1.Subject
	// Path leads from the role of the source to the requested role. It holds only the latter if the source grants it
	// directly.
	Path []Role
}

// maxSearches bounds the roles from which one explanation searches for paths.
const maxSearches = 1000

// ExplainRole lists up to limit ways in which an identity has a role by the given bindings. The order is shortest first,
// then by path and binding. If more is true, other ways exist or may exist.
func (rs *RuleSet) ExplainRole(who Identity, role Role, bindings []*Binding, limit int) (reasons []RoleReason, more bool) {
	trim := func() {
		slices.SortFunc(reasons, RoleReason.compareReason)
		if len(reasons) > limit {
			clear(reasons[limit:])
			reasons, more = reasons[:limit], true
		}
	}
	byRole := rs.grantingBindingsByRole(who, role, bindings)
	distance := rs.graph.DistancesTo(role)
	near := slices.SortedFunc(maps.Keys(byRole), func(x, y Role) int {
		return cmp.Or(cmp.Compare(distance(x), distance(y)), x.Compare(y))
	})
	for i, r := range near {
		if i == maxSearches || len(reasons) == limit && len(reasons[limit-1].Path) <= distance(r) {
			return reasons, true
		}
		paths, others := [][]Role{{role}}, false
		if r != role {
			paths, others = rs.PathsBetween(r, role, limit)
		}
		entries := byRole[r]
		slices.SortFunc(entries, func(x, y RoleReason) int { return strings.Compare(x.Source.String(), y.Source.String()) })
		for _, path := range paths {
			for _, e := range entries[:min(len(entries), limit+1)] {
				reasons = append(reasons, RoleReason{e.Source, e.Subject, path})
			}
		}
		more = more || others
		trim()
	}
	return reasons, more
}

// grantingBindingsByRole groups the bindings that give an identity the role by the role of the binding. The reasons have no path yet.
func (rs *RuleSet) grantingBindingsByRole(who Identity, role Role, bindings []*Binding) map[Role][]RoleReason {
	byRole, sources := map[Role][]RoleReason{}, map[string]struct{}{}
	for _, b := range bindings {
		if explicit, implied := rs.grantsRole(b, role); !explicit && !implied {
			continue
		}
		if subject, ok := who.MatchingSubject(b); ok {
			byRole[b.Role] = append(byRole[b.Role], RoleReason{Source: b, Subject: subject})
			sources[b.String()] = struct{}{}
		}
	}
	for _, b := range bindings {
		if _, due := sources[b.Source]; due || !b.IsGenerated() || b.Role != role {
			continue
		}
		if subject, ok := who.MatchingSubject(b); ok {
			byRole[role] = append(byRole[role], RoleReason{Source: b, Subject: subject})
		}
	}
	return byRole
}

func (r RoleReason) compareReason(other RoleReason) int {
	return cmp.Or(cmp.Compare(len(r.Path), len(other.Path)), slices.CompareFunc(r.Path, other.Path, Role.Compare),
		strings.Compare(r.Source.String(), other.Source.String()))
}
