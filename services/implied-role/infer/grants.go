package infer

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// grantsBySubject holds the roles that explicit bindings grant to each subject.
type grantsBySubject map[rbacv1.Subject][]roleGrant

// roleGrant is a granted role. If source is true, the roles that it implies are granted too.
type roleGrant struct {
	role   Role
	source bool
}

// addGrants records the role of an explicit binding for its subjects that are in among, or for all if among is nil.
func (g grantsBySubject) addGrants(b *Binding, among grantsBySubject) {
	if b == nil || b.IsGenerated() {
		return
	}
	given := roleGrant{b.Role, b.IsSource()}
	for s := range b.effectiveSubjects() {
		if _, ok := among[s]; ok || among == nil {
			g[s] = append(g[s], given)
		}
	}
}

// rolesOf lists all roles of a subject in order, including implied ones.
func (g grantsBySubject) rolesOf(s rbacv1.Subject, rules *RuleSet) []Role {
	var all []Role
	for _, given := range g[s] {
		all = append(all, given.role)
		if given.source {
			all = append(all, rules.ImpliedRoles(given.role)...)
		}
	}
	slices.SortFunc(all, Role.Compare)
	return slices.Compact(all)
}

// countRoles returns the number of roles of a subject. It counts a role once for each binding that gives it, so it is an
// upper bound that is cheap to compute.
func (g grantsBySubject) countRoles(s rbacv1.Subject, rules *RuleSet) int {
	n := 0
	for _, given := range g[s] {
		n += 1 + rules.CountImpliedRoles(given.role)
	}
	return n
}

// compareSubjects lists the subjects that would gain or lose roles.
func (c Comparison) compareSubjects(d *Delta) {
	touched, before, after := grantsBySubject{}, grantsBySubject{}, grantsBySubject{}
	for _, change := range c.Changes {
		touched.addGrants(change.Before, nil)
		touched.addGrants(change.After, nil)
	}
	for _, change := range c.Changes {
		before.addGrants(change.Before, touched)
		after.addGrants(change.After, touched)
	}
	for _, b := range c.Others {
		before.addGrants(b, touched)
		after.addGrants(b, touched)
	}
	left := roleBudget(maxRoles)
	for _, s := range slices.SortedFunc(maps.Keys(touched), CompareSubjects) {
		if !left.spendRoles(before.countRoles(s, c.Before) + after.countRoles(s, c.After)) {
			d.More = true
			return
		}
		was, is := before.rolesOf(s, c.Before), after.rolesOf(s, c.After)
		sc := SubjectRolesChange{s, subtractRoles(is, was), subtractRoles(was, is)}
		if len(sc.Gained)+len(sc.Lost) == 0 {
			continue
		}
		if len(d.Subjects) == c.Most {
			d.More = true
			return
		}
		d.Subjects = append(d.Subjects, sc)
	}
}
