package infer

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/entail-dev/entail/services/implied-role/closure"
)

// RuleSet is the rules of one namespace with all that follows from them. It never
// changes, and may be used by many at a time.
type RuleSet struct {
	rules []EvaluatedRule // by name
	limit int
	graph *closure.Graph[Role]
	// most is how many roles come with one at most.
	most int
	// paused are the rules that would bring about too many bindings, by name, with about how many.
	paused map[string]int
	// free is what the rules say without the paused ones.
	free    *closure.Graph[Role]
	answers *answers
}

// answers are computed when first asked for.
type answers struct {
	mu sync.Mutex
	// derived is what comes with a role.
	derived map[Role][]derivedRole
	// kept is how many derived roles these are.
	kept int
	// named are the rules that hold, by what they say.
	named map[edge][]string
}

// edge is a rule as the graph sees it.
type edge = closure.Edge[Role]

// NewRuleSet evaluates rules and computes what follows from those that hold.
func NewRuleSet(namespace string, rules []Rule, p Policy) *RuleSet {
	rs := &RuleSet{rules: p.evaluateAll(namespace, rules), limit: p.MaxGenerated, answers: &answers{derived: map[Role][]derivedRole{}}}
	rs.graph = closure.New(rs.edges(nil), Role.Compare)
	rs.free = rs.graph
	for _, r := range rs.graph.Nodes() {
		rs.most = max(rs.most, rs.graph.Count(r))
	}
	return rs
}

// edges lists the rules that hold, but for those given.
func (rs *RuleSet) edges(without map[string]int) []edge {
	edges := make([]edge, 0, len(rs.rules))
	for _, r := range rs.rules {
		if _, ok := without[r.Name]; r.Reason == Accepted && !ok {
			edges = append(edges, edge{From: r.Parent, To: r.Child})
		}
	}
	return edges
}

// Limited is rs for a namespace in which load tells how many bindings are sources and
// grant a role, and sources how many there are in all. A rule that would bring about too
// many bindings is paused: what it has brought about stays, and nothing is added.
func (rs *RuleSet) Limited(sources int, load func(Role) int) *RuleSet {
	limited := *rs
	limited.paused, limited.free = nil, rs.graph
	if sources*(1+rs.most) <= rs.limit {
		return &limited
	}
	holders := rs.graph.Gather(load)
	for _, r := range rs.rules {
		if r.Reason != Accepted {
			continue
		}
		if n := holders(r.Parent) * (1 + rs.graph.Count(r.Child)); n > rs.limit {
			if limited.paused == nil {
				limited.paused = map[string]int{}
			}
			limited.paused[r.Name] = n
		}
	}
	if len(limited.paused) > 0 {
		limited.free = closure.New(rs.edges(limited.paused), Role.Compare)
	}
	return &limited
}

// Same reports whether rs says the same as another, and was made of the same rules.
func (rs *RuleSet) Same(other *RuleSet) bool {
	return other != nil && rs.graph == other.graph && maps.Equal(rs.paused, other.paused)
}

// Rules lists all rules by name.
func (rs *RuleSet) Rules() []EvaluatedRule { return rs.rules }

// Parents lists the roles that imply others, in order.
func (rs *RuleSet) Parents() iter.Seq[Role] {
	return func(yield func(Role) bool) {
		for _, r := range rs.graph.Nodes() {
			if len(rs.graph.Next(r)) > 0 && !yield(r) {
				return
			}
		}
	}
}

// Implied lists the roles that come with r, in order.
func (rs *RuleSet) Implied(r Role) []Role { return slices.Collect(rs.graph.From(r)) }

// Count is how many roles come with r.
func (rs *RuleSet) Count(r Role) int { return rs.graph.Count(r) }

// Direct lists the roles that come with r by a single rule, in order.
func (rs *RuleSet) Direct(r Role) []Role { return rs.graph.Next(r) }

// Implying lists the roles that r comes with, in order.
func (rs *RuleSet) Implying(r Role) []Role { return slices.Collect(rs.graph.To(r)) }

// Implies reports whether child comes with r.
func (rs *RuleSet) Implies(r, child Role) bool { return rs.graph.Reaches(r, child) }

// Paths lists up to limit ways in which child comes with r, shortest first; more means
// that there are, or may be, others.
func (rs *RuleSet) Paths(r, child Role, limit int) (paths [][]Role, more bool) {
	return rs.graph.AllPaths(r, child, limit)
}

// Path is the first of the shortest ways in which child comes with r.
func (rs *RuleSet) Path(r, child Role) []Role { return rs.graph.Path(r, child) }

// Between lists by name the rules that hold and say that parent implies child.
func (rs *RuleSet) Between(parent, child Role) []string {
	rs.answers.mu.Lock()
	defer rs.answers.mu.Unlock()
	if rs.answers.named == nil {
		rs.answers.named = make(map[edge][]string, len(rs.rules))
		for _, r := range rs.rules {
			if e := (edge{From: r.Parent, To: r.Child}); r.Reason == Accepted {
				rs.answers.named[e] = append(rs.answers.named[e], r.Name)
			}
		}
	}
	return rs.answers.named[edge{From: parent, To: child}]
}

// With lists by name the rules that hold and have this parent.
func (rs *RuleSet) With(parent Role) []string {
	var names []string
	for _, child := range rs.Direct(parent) {
		names = append(names, rs.Between(parent, child)...)
	}
	slices.Sort(names)
	return names
}

// Cycles lists the sets of roles that all imply each other.
func (rs *RuleSet) Cycles() [][]Role { return rs.graph.Cycles() }

// Changed lists the roles that may imply something else, or in another way, than they did
// by the rule set before.
func (rs *RuleSet) Changed(before *RuleSet) []Role {
	var parents []Role
	for was, is := before.statements(), rs.statements(); len(was)+len(is) > 0; {
		switch {
		case len(was) > 0 && len(is) > 0 && was[0] == is[0]:
			was, is = was[1:], is[1:]
		case len(is) == 0 || len(was) > 0 && was[0].name <= is[0].name:
			parents, was = append(parents, was[0].From), was[1:]
		default:
			parents, is = append(parents, is[0].From), is[1:]
		}
	}
	if len(parents) == 0 {
		return nil
	}
	roles := append(before.graph.Upstream(slices.Values(parents)), rs.graph.Upstream(slices.Values(parents))...)
	slices.SortFunc(roles, Role.Compare)
	return slices.Compact(roles)
}

// statement is what a rule says as long as it holds.
type statement struct {
	name string
	edge
	paused bool
}

// statements lists what all rules say that hold, by name.
func (rs *RuleSet) statements() []statement {
	list := make([]statement, 0, len(rs.rules))
	for _, r := range rs.rules {
		if r.Reason == Accepted {
			_, paused := rs.paused[r.Name]
			list = append(list, statement{r.Name, edge{From: r.Parent, To: r.Child}, paused})
		}
	}
	return list
}
