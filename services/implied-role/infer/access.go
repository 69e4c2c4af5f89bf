package infer

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// RoleHolding is a role of a subject, with the bindings that grant it.
type RoleHolding struct {
	Subject           rbacv1.Subject
	Role              Role
	Explicit, Implied bool
	// Bindings holds the explicit bindings behind the role, as [Binding.String] returns them. It also holds generated
	// bindings that still exist although no explicit binding implies them any more.
	Bindings []string
}

// Holders lists the subjects that have a role by the given bindings, sorted by subject.
func (rs *RuleSet) Holders(role Role, bindings []*Binding) []RoleHolding {
	found := map[rbacv1.Subject]*RoleHolding{}
	add := func(s rbacv1.Subject, binding string, explicit bool) {
		if found[s] == nil {
			found[s] = &RoleHolding{Subject: s, Role: role}
		}
		found[s].addBinding(binding, explicit)
	}
	for _, b := range bindings {
		if explicit, implied := rs.grantsRole(b, role); explicit || implied {
			for s := range b.effectiveSubjects() {
				add(s, b.String(), explicit)
			}
		}
	}
	for _, b := range bindings {
		if !b.IsGenerated() || b.Role != role {
			continue
		}
		for s := range b.effectiveSubjects() {
			if h := found[s]; h == nil || !h.hasBinding(b.Source) {
				add(s, b.Name, false)
			}
		}
	}
	return sortHoldings(found, func(x, y RoleHolding) int { return CompareSubjects(x.Subject, y.Subject) })
}

// grantsRole reports whether an explicit binding grants a role, directly or by implication. A binding that is being deleted
// still grants its own role, because Kubernetes honours it until it is gone.
func (rs *RuleSet) grantsRole(b *Binding, role Role) (explicit, implied bool) {
	if b.IsGenerated() {
		return false, false
	}
	explicit = b.Role == role
	return explicit, !explicit && b.IsSource() && rs.HasImpliedRole(b.Role, role)
}

// EffectiveRoles lists the roles that an identity has by the given bindings, sorted by role.
func (rs *RuleSet) EffectiveRoles(who Identity, bindings []*Binding) []RoleHolding {
	found := map[Role]*RoleHolding{}
	add := func(role Role, name string, explicit bool) {
		if found[role] == nil {
			found[role] = &RoleHolding{Role: role}
		}
		found[role].addBinding(name, explicit)
	}
	var generated []*Binding
	for _, b := range bindings {
		if _, ok := who.MatchingSubject(b); !ok {
			continue
		}
		if b.IsGenerated() {
			generated = append(generated, b)
			continue
		}
		add(b.Role, b.String(), true)
		if b.IsSource() {
			for _, role := range rs.ImpliedRoles(b.Role) {
				add(role, b.Name, false)
			}
		}
	}
	for _, b := range generated {
		if h := found[b.Role]; h == nil || !h.hasBinding(b.Source) {
			add(b.Role, b.Name, false)
		}
	}
	return sortHoldings(found, func(x, y RoleHolding) int { return x.Role.Compare(y.Role) })
}

// hasBinding reports whether a binding is one of h.Bindings.
func (h *RoleHolding) hasBinding(binding string) bool {
	_, has := slices.BinarySearch(h.Bindings, binding)
	return has
}

func (h *RoleHolding) addBinding(binding string, explicit bool) {
	h.Explicit = h.Explicit || explicit
	h.Implied = h.Implied || !explicit
	if i, has := slices.BinarySearch(h.Bindings, binding); !has {
		h.Bindings = slices.Insert(h.Bindings, i, binding)
	}
}

func sortHoldings[K comparable](found map[K]*RoleHolding, compare func(x, y RoleHolding) int) []RoleHolding {
	list := make([]RoleHolding, 0, len(found))
	for _, h := range found {
		list = append(list, *h)
	}
	slices.SortFunc(list, compare)
	return list
}
