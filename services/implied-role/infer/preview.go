package infer

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// BindingChange is an explicit binding before and after a change. Nil means that it does not exist.
type BindingChange struct{ Before, After *Binding }

// Delta holds the effects of a change of rules or bindings.
type Delta struct {
	// Bindings lists the generated bindings that would be created, updated, deleted or emptied, by name. One with an
	// obstacle would not be created.
	Bindings []BindingDifference
	// Verbs counts the bindings by verb, including those that are not listed. The verb 0 counts bindings with an
	// obstacle.
	Verbs map[Verb]int
	// Rows lists the roles whose implied roles would change, in order.
	Rows []ImpliedRolesChange
	// Subjects lists the subjects that would gain or lose roles, in order.
	Subjects []SubjectRolesChange
	// Begun lists the cycles that would be new, Ended the cycles that would be gone.
	Begun, Ended [][]Role
	// Refused lists the rules that would not hold or would be paused, if they are new or changed, or hold unpaused now.
	Refused []EvaluatedRule
	// Statuses counts the rules whose status would change.
	Statuses int
	// More means that some bindings, rows or subjects are not listed.
	More bool
}

// ImpliedRolesChange holds the implied roles that a role gains and loses.
type ImpliedRolesChange struct {
	Parent         Role
	Added, Removed []Role
}

// SubjectRolesChange holds the roles that a subject gains and loses over all bindings.
type SubjectRolesChange struct {
	Subject      rbacv1.Subject
	Gained, Lost []Role
}

// Comparison is the input of [ComputeDelta].
type Comparison struct {
	Before, After *RuleSet
	// Changes holds the explicit bindings that would change, and those to a role that [RuleSet.ChangedRoles] lists.
	Changes []BindingChange
	// Others holds all other explicit bindings. A role that one of them gives is neither gained nor lost.
	Others []*Binding
	Exists func(Role) bool
	// Occupant returns the explicit binding of a name, or nil.
	Occupant func(name string) *Binding
	// Most bounds the bindings, rows and subjects that are listed, each.
	Most int
}

// maxRoles bounds the roles that a comparison visits, separately for rows, subjects and statuses.
const maxRoles = 5_000_000

// roleBudget is the number of roles that may still be visited.
type roleBudget int

// spendRoles subtracts the roles from the budget and reports whether it sufficed.
func (b *roleBudget) spendRoles(roles int) bool {
	*b -= roleBudget(roles + 1)
	return *b >= 0
}

// ComputeDelta computes the effects of a change.
func ComputeDelta(c Comparison) Delta {
	d := Delta{Verbs: map[Verb]int{}, Refused: c.newlyRefusedRules()}
	c.compareBindings(&d)
	c.compareImpliedRoles(&d)
	c.compareSubjects(&d)
	c.countStatusChanges(&d)
	same := func(cycles [][]Role) func([]Role) bool {
		known := make(map[Role][]Role, len(cycles))
		for _, cycle := range cycles {
			known[cycle[0]] = cycle
		}
		return func(cycle []Role) bool { return slices.Equal(cycle, known[cycle[0]]) }
	}
	d.Begun = slices.DeleteFunc(c.After.Cycles(), same(c.Before.Cycles()))
	d.Ended = slices.DeleteFunc(c.Before.Cycles(), same(c.After.Cycles()))
	return d
}

// compareImpliedRoles lists the roles whose implied roles change.
func (c Comparison) compareImpliedRoles(d *Delta) {
	left := roleBudget(maxRoles)
	for _, r := range c.After.ChangedRoles(c.Before) {
		if !left.spendRoles(c.Before.CountImpliedRoles(r) + c.After.CountImpliedRoles(r)) {
			d.More = true
			return
		}
		was, is := c.Before.ImpliedRoles(r), c.After.ImpliedRoles(r)
		row := ImpliedRolesChange{r, subtractRoles(is, was), subtractRoles(was, is)}
		if len(row.Added)+len(row.Removed) == 0 {
			continue
		}
		if len(d.Rows) == c.Most {
			d.More = true
			return
		}
		d.Rows = append(d.Rows, row)
	}
}

// subtractRoles returns the roles of all that are not in some. Both must be sorted.
func subtractRoles(all, some []Role) []Role {
	var list []Role
	for _, r := range all {
		if _, has := slices.BinarySearchFunc(some, r, Role.Compare); !has {
			list = append(list, r)
		}
	}
	return list
}

// compareBindings lists and counts the differences. It holds only about twice c.Most of them at a time.
func (c Comparison) compareBindings(d *Delta) {
	trim := func() {
		slices.SortFunc(d.Bindings, func(a, b BindingDifference) int { return strings.Compare(a.Name, b.Name) })
		if len(d.Bindings) > c.Most {
			clear(d.Bindings[c.Most:])
			d.Bindings, d.More = d.Bindings[:c.Most], true
		}
	}
	for _, change := range c.Changes {
		for _, b := range c.After.PlanSource(c.planInputAfter(change)).Differences() {
			d.Verbs[b.Verb]++
			if d.Bindings = append(d.Bindings, b); len(d.Bindings) > 2*c.Most+chunk {
				trim()
			}
		}
	}
	trim()
}

// chunk bounds the extra differences that are held before the list is trimmed.
const chunk = 1000

// planInputAfter returns the input of the plan after the change, as if all earlier actions had succeeded.
func (c Comparison) planInputAfter(change BindingChange) PlanInput {
	in := PlanInput{Binding: change.After, Occupant: c.Occupant}
	for _, b := range []*Binding{change.Before, change.After} {
		if b != nil {
			in.Source = b.Name
		}
	}
	for _, d := range c.Before.DesiredBindings(change.Before) {
		if !d.Paused && c.Occupant(d.Name) == nil {
			in.Generated = append(in.Generated, d.ToBinding())
		}
	}
	return in
}

func (c Comparison) newlyRefusedRules() []EvaluatedRule {
	was := map[string]EvaluatedRule{}
	for _, r := range c.Before.rules {
		was[r.Name] = r
	}
	var list []EvaluatedRule
	for _, r := range c.After.rules {
		before, known := was[r.Name]
		changed := !known || before.Rule != r.Rule
		if n, paused := c.After.paused[r.Name]; paused {
			_, already := c.Before.paused[r.Name]
			r.Reason, r.Message = TooManyBindings, fmt.Sprintf("it would ask for about %d RoleBindings, more than %d", n, c.After.limit)
			changed = changed || !already
		}
		if r.Reason != Accepted && (changed || before.Reason == Accepted) {
			list = append(list, r)
		}
	}
	return list
}

// countStatusChanges counts the rules whose status would change.
func (c Comparison) countStatusChanges(d *Delta) {
	in := StatusInput{Exists: c.Exists}
	was := make(map[string]EvaluatedRule, len(c.Before.rules))
	for _, r := range c.Before.rules {
		was[r.Name] = r
	}
	others := c.isRoleChangedFunc()
	for _, r := range c.After.rules {
		before, known := was[r.Name]
		if known && before.Parent == r.Parent && !others(r.Parent) && c.Before.ComputeStatus(before, in).isEqual(c.After.ComputeStatus(r, in)) {
			continue
		}
		d.Statuses++
	}
}

// isRoleChangedFunc returns a function that reports whether the implied roles of a role change. It returns true for a role that
// the budget did not allow to compare.
func (c Comparison) isRoleChangedFunc() func(Role) bool {
	left, known := roleBudget(maxRoles), map[Role]bool{}
	for _, r := range c.After.ChangedRoles(c.Before) {
		n := c.After.CountImpliedRoles(r)
		known[r] = n != c.Before.CountImpliedRoles(r) || !left.spendRoles(n) || !slices.Equal(c.Before.ImpliedRoles(r), c.After.ImpliedRoles(r))
	}
	return func(r Role) bool { return known[r] }
}

func (s RuleStatus) isEqual(other RuleStatus) bool {
	return s.Parent == other.Parent && s.Accepted == other.Accepted && s.Acyclic == other.Acyclic &&
		s.ChildRoleFound == other.ChildRoleFound && s.Synced == other.Synced
}
