package infer

import (
	"fmt"
	"maps"
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
	// Verbs is how many steps there are of each kind, listed or not.
	Verbs map[Verb]int
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
	// More means that there are steps, rows or subjects that are not listed.
	More bool
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
	// Most is how many steps, rows and subjects are listed.
	Most int
}

// maxLooks bounds the roles that are looked at for the rows of a delta, for its subjects, and for its statuses.
const maxLooks = 5_000_000

// looks is how many more roles may be looked at.
type looks int

// at reports whether that many may be.
func (l *looks) at(roles int) bool {
	*l -= looks(roles + 1)
	return *l >= 0
}

// Compare computes what would be different afterwards.
func Compare(c Comparison) Delta {
	d := Delta{Verbs: map[Verb]int{}, Refused: c.refused()}
	c.steps(&d)
	c.rows(&d)
	c.subjects(&d)
	c.statuses(&d)
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

// rows lists how the roles that others imply change.
func (c Comparison) rows(d *Delta) {
	left := looks(maxLooks)
	for _, r := range c.After.Changed(c.Before) {
		if !left.at(c.Before.Count(r) + c.After.Count(r)) {
			d.More = true
			return
		}
		was, is := c.Before.Implied(r), c.After.Implied(r)
		row := RowChange{r, without(is, was), without(was, is)}
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

// steps lists and counts what would be done, without holding more than a few of all steps at a time.
func (c Comparison) steps(d *Delta) {
	trim := func() {
		slices.SortFunc(d.Steps, func(a, b Step) int { return strings.Compare(a.Name, b.Name) })
		if len(d.Steps) > c.Most {
			clear(d.Steps[c.Most:])
			d.Steps, d.More = d.Steps[:c.Most], true
		}
	}
	for _, change := range c.Changes {
		for _, step := range c.After.Plan(c.stock(change)) {
			d.Verbs[step.Verb]++
			if d.Steps = append(d.Steps, step); len(d.Steps) > 2*c.Most+chunk {
				trim()
			}
		}
	}
	trim()
}

// chunk is how many steps are taken in before some are left out.
const chunk = 1000

// stock is what there would be under the name of a binding, had everything before it been done.
func (c Comparison) stock(change Change) Stock {
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
	return stock
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

// statuses counts the rules that would get another status.
func (c Comparison) statuses(d *Delta) {
	facts := Facts{Exists: c.Exists}
	was := make(map[string]Judged, len(c.Before.rules))
	for _, r := range c.Before.rules {
		was[r.Name] = r
	}
	others := c.otherRows()
	for _, r := range c.After.rules {
		before, known := was[r.Name]
		if known && before.Parent == r.Parent && !others(r.Parent) && c.Before.Standing(before, facts).equal(c.After.Standing(r, facts)) {
			continue
		}
		d.Statuses++
	}
}

// otherRows tells whether a role would imply others than it does; that it might, when too
// many roles would have to be looked at.
func (c Comparison) otherRows() func(Role) bool {
	left, known := looks(maxLooks), map[Role]bool{}
	for _, r := range c.After.Changed(c.Before) {
		n := c.After.Count(r)
		known[r] = n != c.Before.Count(r) || !left.at(n) || !slices.Equal(c.Before.Implied(r), c.After.Implied(r))
	}
	return func(r Role) bool { return known[r] }
}

func (s Status) equal(other Status) bool {
	return s.Parent == other.Parent && s.Accepted == other.Accepted && s.Acyclic == other.Acyclic &&
		s.ChildRoleFound == other.ChildRoleFound && s.Synced == other.Synced
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

// count is how many roles those of a subject are, the same ones counted again.
func (h held) count(s rbacv1.Subject, b *Rulebook) int {
	n := 0
	for _, g := range h[s] {
		n += 1 + b.Count(g.role)
	}
	return n
}

// subjects lists who would gain and lose roles.
func (c Comparison) subjects(d *Delta) {
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
	left := looks(maxLooks)
	for _, s := range slices.SortedFunc(maps.Keys(touched), CompareSubjects) {
		if !left.at(before.count(s, c.Before) + after.count(s, c.After)) {
			d.More = true
			return
		}
		was, is := before.roles(s, c.Before), after.roles(s, c.After)
		sc := SubjectChange{s, without(is, was), without(was, is)}
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
