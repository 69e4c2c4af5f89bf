package infer

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Change is an explicit binding as it is and as it would be; nil if there is none.
type Change struct{ Before, After *Binding }

// Delta is what a change of rules or bindings brings about.
type Delta struct {
	// Steps create, update and delete generated bindings, by name. Hold means that one
	// would not be made, for the rules behind it would be paused.
	Steps []Step
	// Rows are the roles that would imply others than they do, in order.
	Rows []RowChange
	// Subjects gain and lose roles, in order.
	Subjects []SubjectChange
	// Begun are cycles that are not there yet, Ended those that would be gone.
	Begun, Ended [][]Role
	// Refused rules hold now, or are new, and would not hold; or they would be paused.
	Refused []Judged
	// Statuses is how many rules would get another status.
	Statuses int
}

// RowChange is how the roles that a role implies change.
type RowChange struct {
	Parent         Role
	Added, Removed []Role
}

// SubjectChange is what roles a subject gains and loses, by whatever binding.
type SubjectChange struct {
	Subject      rbacv1.Subject
	Gained, Lost []Role
}

// Comparison is what a [Delta] is computed from.
type Comparison struct {
	Before, After *Rulebook
	// Changes are the explicit bindings that would change, and those with a role that
	// [Rulebook.Changed] lists.
	Changes []Change
	// Others are all other explicit bindings; they tell who has a role anyway.
	Others []*Binding
	Exists func(Role) bool
	// Holder finds the binding that people gave a name; nil if they did not.
	Holder func(name string) *Binding
}

// Compare computes what would be different afterwards.
func Compare(c Comparison) Delta {
	d := Delta{Steps: c.steps(), Subjects: c.subjects(), Refused: c.refused(), Statuses: c.statuses()}
	for _, r := range c.After.Changed(c.Before) {
		was, is := c.Before.Implied(r), c.After.Implied(r)
		row := RowChange{r, without(is, was), without(was, is)}
		if len(row.Added)+len(row.Removed) > 0 {
			d.Rows = append(d.Rows, row)
		}
	}
	same := func(cycles [][]Role) func([]Role) bool {
		return func(cycle []Role) bool {
			return slices.ContainsFunc(cycles, func(other []Role) bool { return slices.Equal(cycle, other) })
		}
	}
	d.Begun = slices.DeleteFunc(c.After.Cycles(), same(c.Before.Cycles()))
	d.Ended = slices.DeleteFunc(c.Before.Cycles(), same(c.After.Cycles()))
	return d
}

// without lists those of all that some, sorted as well, lacks.
func without(all, some []Role) []Role {
	var list []Role
	for _, r := range all {
		if _, has := slices.BinarySearchFunc(some, r, Role.Compare); !has {
			list = append(list, r)
		}
	}
	return list
}

func (c Comparison) steps() []Step {
	var steps []Step
	for _, change := range c.Changes {
		stock := Stock{Binding: change.After, Holder: c.Holder}
		for _, b := range []*Binding{change.Before, change.After} {
			if b != nil {
				stock.Source = b.Name
			}
		}
		for _, w := range c.Before.Wanted(change.Before) {
			if !w.Held && c.Holder(w.Name) == nil {
				stock.Generated = append(stock.Generated, w.Binding())
			}
		}
		steps = append(steps, c.After.Plan(stock)...)
	}
	slices.SortFunc(steps, func(a, b Step) int { return strings.Compare(a.Name, b.Name) })
	return steps
}

func (c Comparison) refused() []Judged {
	was := map[string]Judged{}
	for _, r := range c.Before.rules {
		was[r.Name] = r
	}
	var list []Judged
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

func (c Comparison) statuses() int {
	facts := Facts{Exists: c.Exists}
	was := map[string]Status{}
	for _, r := range c.Before.rules {
		was[r.Name] = c.Before.Status(r, facts)
	}
	n := 0
	for _, r := range c.After.rules {
		before, known := was[r.Name]
		after := c.After.Status(r, facts)
		if !known || !before.equal(after) {
			n++
		}
	}
	return n
}

func (s Status) equal(other Status) bool {
	return s.Parent == other.Parent && slices.Equal(s.Children, other.Children) && s.Accepted == other.Accepted &&
		s.Acyclic == other.Acyclic && s.ChildRoleFound == other.ChildRoleFound && s.Synced == other.Synced
}

// held is the roles that explicit bindings give, by subject.
type held map[rbacv1.Subject][]given

// given is a role, and whether others come with it.
type given struct {
	role   Role
	source bool
}

// add takes in what a binding gives to subjects among those given, or to all.
func (h held) add(b *Binding, among held) {
	if b == nil || !b.Grants() {
		return
	}
	g := given{b.Role, b.IsSource()}
	for _, s := range b.Subjects {
		if _, ok := among[s]; ok || among == nil {
			h[s] = append(h[s], g)
		}
	}
}

// roles lists all roles of a subject in order.
func (h held) roles(s rbacv1.Subject, b *Rulebook) []Role {
	var all []Role
	for _, g := range h[s] {
		all = append(all, g.role)
		if g.source {
			all = append(all, b.Implied(g.role)...)
		}
	}
	slices.SortFunc(all, Role.Compare)
	return slices.Compact(all)
}

func (c Comparison) subjects() []SubjectChange {
	touched, before, after := held{}, held{}, held{}
	for _, change := range c.Changes {
		touched.add(change.Before, nil)
		touched.add(change.After, nil)
	}
	for _, change := range c.Changes {
		before.add(change.Before, touched)
		after.add(change.After, touched)
	}
	for _, b := range c.Others {
		before.add(b, touched)
		after.add(b, touched)
	}
	var list []SubjectChange
	for s := range touched {
		was, is := before.roles(s, c.Before), after.roles(s, c.After)
		if sc := (SubjectChange{s, without(is, was), without(was, is)}); len(sc.Gained)+len(sc.Lost) > 0 {
			list = append(list, sc)
		}
	}
	slices.SortFunc(list, func(a, b SubjectChange) int { return CompareSubjects(a.Subject, b.Subject) })
	return list
}
