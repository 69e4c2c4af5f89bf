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
	// Bindings are generated ones that would be created, updated or deleted, by name. An
	// obstacle means that one would not be made.
	Bindings []Difference
	// Verbs is how many there are of each kind, listed or not; 0 is those with an obstacle.
	Verbs map[Verb]int
	// Rows are the roles that would imply others than they do, in order.
	Rows []RowChange
	// Subjects gain and lose roles, in order.
	Subjects []SubjectChange
	// Begun are cycles that are not there yet, Ended those that would be gone.
	Begun, Ended [][]Role
	// Refused rules hold now, or are new, and would not hold; or they would be paused.
	Refused []EvaluatedRule
	// Statuses is how many rules would get another status.
	Statuses int
	// More means that there are bindings, rows or subjects that are not listed.
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
	Before, After *RuleSet
	// Changes are the explicit bindings that would change, and those with a role that
	// [RuleSet.Changed] lists.
	Changes []Change
	// Others are all other explicit bindings; they tell who has a role anyway.
	Others []*Binding
	Exists func(Role) bool
	// Occupant finds the binding that people gave a name; nil if they did not.
	Occupant func(name string) *Binding
	// Most is how many bindings, rows and subjects are listed.
	Most int
}

// maxRoles bounds the roles that are gone through for the rows of a delta, for its subjects, and for its statuses.
const maxRoles = 5_000_000

// budget is how many more roles may be gone through.
type budget int

// spend reports whether that many may be.
func (b *budget) spend(roles int) bool {
	*b -= budget(roles + 1)
	return *b >= 0
}

// Compare computes what would be different afterwards.
func Compare(c Comparison) Delta {
	d := Delta{Verbs: map[Verb]int{}, Refused: c.refused()}
	c.bindings(&d)
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
	left := budget(maxRoles)
	for _, r := range c.After.Changed(c.Before) {
		if !left.spend(c.Before.Count(r) + c.After.Count(r)) {
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

// bindings lists and counts what would be done, without holding more than a few of all at a time.
func (c Comparison) bindings(d *Delta) {
	trim := func() {
		slices.SortFunc(d.Bindings, func(a, b Difference) int { return strings.Compare(a.Name, b.Name) })
		if len(d.Bindings) > c.Most {
			clear(d.Bindings[c.Most:])
			d.Bindings, d.More = d.Bindings[:c.Most], true
		}
	}
	for _, change := range c.Changes {
		for _, b := range c.After.Plan(c.input(change)).Differences() {
			d.Verbs[b.Verb]++
			if d.Bindings = append(d.Bindings, b); len(d.Bindings) > 2*c.Most+chunk {
				trim()
			}
		}
	}
	trim()
}

// chunk is how many bindings are taken in before some are left out.
const chunk = 1000

// input is what there would be under the name of a binding, had everything before it been done.
func (c Comparison) input(change Change) Input {
	in := Input{Binding: change.After, Occupant: c.Occupant}
	for _, b := range []*Binding{change.Before, change.After} {
		if b != nil {
			in.Source = b.Name
		}
	}
	for _, d := range c.Before.Desired(change.Before) {
		if !d.Paused && c.Occupant(d.Name) == nil {
			in.Generated = append(in.Generated, d.Binding())
		}
	}
	return in
}

func (c Comparison) refused() []EvaluatedRule {
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

// statuses counts the rules that would get another status.
func (c Comparison) statuses(d *Delta) {
	in := StatusInput{Exists: c.Exists}
	was := make(map[string]EvaluatedRule, len(c.Before.rules))
	for _, r := range c.Before.rules {
		was[r.Name] = r
	}
	others := c.otherRows()
	for _, r := range c.After.rules {
		before, known := was[r.Name]
		if known && before.Parent == r.Parent && !others(r.Parent) && c.Before.RuleStatus(before, in).equal(c.After.RuleStatus(r, in)) {
			continue
		}
		d.Statuses++
	}
}

// otherRows tells whether a role would imply others than it does; that it might, when too
// many roles would have to be gone through.
func (c Comparison) otherRows() func(Role) bool {
	left, known := budget(maxRoles), map[Role]bool{}
	for _, r := range c.After.Changed(c.Before) {
		n := c.After.Count(r)
		known[r] = n != c.Before.Count(r) || !left.spend(n) || !slices.Equal(c.Before.Implied(r), c.After.Implied(r))
	}
	return func(r Role) bool { return known[r] }
}

func (s Status) equal(other Status) bool {
	return s.Parent == other.Parent && s.Accepted == other.Accepted && s.Acyclic == other.Acyclic &&
		s.ChildRoleFound == other.ChildRoleFound && s.Synced == other.Synced
}
