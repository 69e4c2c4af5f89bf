package infer

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/entail-dev/entail/services/implied-role/closure"
)

// RuleSet holds the rules of one namespace with their closure. It is immutable and safe for concurrent use.
type RuleSet struct {
	rules []EvaluatedRule // sorted by name
	limit int
	graph *closure.Graph[Role]
	// most is the largest number of roles that one role implies.
	most int
	// paused holds the rules that would generate too many bindings, by name, with the estimated number.
	paused map[string]int
	// free is the graph without the paused rules.
	free    *closure.Graph[Role]
	answers *ruleSetCache
}

// ruleSetCache caches results that are computed on demand.
type ruleSetCache struct {
	mu sync.Mutex
	// derived holds the implied roles of each role.
	derived map[Role][]derivedRole
	// kept is the number of roles in derived.
	kept int
	// named holds the names of the accepted rules, by parent and child.
	named map[edge][]string
}

// edge is a rule as an edge of the graph.
type edge = closure.Edge[Role]

// NewRuleSet evaluates the rules and computes the closure of the accepted ones.
func NewRuleSet(namespace string, rules []Rule, p Policy) *RuleSet {
	rs := &RuleSet{rules: p.evaluateRules(namespace, rules), limit: p.MaxGenerated, answers: &ruleSetCache{derived: map[Role][]derivedRole{}}}
	rs.graph = closure.New(rs.acceptedEdges(nil), Role.Compare)
	rs.free = rs.graph
	for _, r := range rs.graph.Nodes() {
		rs.most = max(rs.most, rs.graph.CountReachable(r))
	}
	return rs
}

// acceptedEdges lists the accepted rules that are not in without.
func (rs *RuleSet) acceptedEdges(without map[string]int) []edge {
	edges := make([]edge, 0, len(rs.rules))
	for _, r := range rs.rules {
		if _, ok := without[r.Name]; r.Reason == Accepted && !ok {
			edges = append(edges, edge{From: r.Parent, To: r.Child})
		}
	}
	return edges
}

// WithPausedRules returns a copy of rs with the paused rules of a namespace. load returns the number of sources that
// grant a role; sources is the number of all sources. A rule that would generate more than the limit is paused: its
// bindings stay, but none are added.
func (rs *RuleSet) WithPausedRules(sources int, load func(Role) int) *RuleSet {
	limited := *rs
	limited.paused, limited.free = nil, rs.graph
	if sources*(1+rs.most) <= rs.limit {
		return &limited
	}
	holders := rs.graph.UpstreamSumFunc(load)
	for _, r := range rs.rules {
		if r.Reason != Accepted {
			continue
		}
		if n := holders(r.Parent) * (1 + rs.graph.CountReachable(r.Child)); n > rs.limit {
			if limited.paused == nil {
				limited.paused = map[string]int{}
			}
			limited.paused[r.Name] = n
		}
	}
	if len(limited.paused) > 0 {
		limited.free = closure.New(rs.acceptedEdges(limited.paused), Role.Compare)
	}
	return &limited
}

// IsSameRuleSet reports whether rs and other share one graph and pause the same rules.
func (rs *RuleSet) IsSameRuleSet(other *RuleSet) bool {
	return other != nil && rs.graph == other.graph && maps.Equal(rs.paused, other.paused)
}

// Rules lists all rules, sorted by name.
func (rs *RuleSet) Rules() []EvaluatedRule { return rs.rules }

// ParentRoles yields the roles that imply others, in order.
func (rs *RuleSet) ParentRoles() iter.Seq[Role] {
	return func(yield func(Role) bool) {
		for _, r := range rs.graph.Nodes() {
			if len(rs.graph.Successors(r)) > 0 && !yield(r) {
				return
			}
		}
	}
}

// ImpliedRoles lists the roles that r implies, in order.
func (rs *RuleSet) ImpliedRoles(r Role) []Role { return slices.Collect(rs.graph.ReachableFrom(r)) }

// CountImpliedRoles returns the number of roles that r implies.
func (rs *RuleSet) CountImpliedRoles(r Role) int { return rs.graph.CountReachable(r) }

// DirectlyImpliedRoles lists the roles that r implies by a single rule, in order.
func (rs *RuleSet) DirectlyImpliedRoles(r Role) []Role { return rs.graph.Successors(r) }

// ImplyingRoles lists the roles that imply r, in order.
func (rs *RuleSet) ImplyingRoles(r Role) []Role { return slices.Collect(rs.graph.NodesReaching(r)) }

// HasImpliedRole reports whether r implies child.
func (rs *RuleSet) HasImpliedRole(r, child Role) bool { return rs.graph.CanReach(r, child) }

// PathsBetween lists up to limit paths from r to child, shortest first. If more is true, other paths exist or may exist.
func (rs *RuleSet) PathsBetween(r, child Role, limit int) (paths [][]Role, more bool) {
	return rs.graph.SimplePaths(r, child, limit)
}

// ShortestPath returns the first of the shortest paths from r to child.
func (rs *RuleSet) ShortestPath(r, child Role) []Role { return rs.graph.ShortestPath(r, child) }

// RulesBetween lists the names of the accepted rules from parent to child, in order.
func (rs *RuleSet) RulesBetween(parent, child Role) []string {
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

// RulesWithParent lists the names of the accepted rules that have this parent, in order.
func (rs *RuleSet) RulesWithParent(parent Role) []string {
	var names []string
	for _, child := range rs.DirectlyImpliedRoles(parent) {
		names = append(names, rs.RulesBetween(parent, child)...)
	}
	slices.Sort(names)
	return names
}

// Cycles lists the sets of roles that all imply each other.
func (rs *RuleSet) Cycles() [][]Role { return rs.graph.Cycles() }

// ChangedRoles lists the roles whose implied roles, or the paths to them, may differ between the two rule sets.
func (rs *RuleSet) ChangedRoles(before *RuleSet) []Role {
	var parents []Role
	for was, is := before.acceptedRules(), rs.acceptedRules(); len(was)+len(is) > 0; {
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
	roles := append(before.graph.UpstreamOf(slices.Values(parents)), rs.graph.UpstreamOf(slices.Values(parents))...)
	slices.SortFunc(roles, Role.Compare)
	return slices.Compact(roles)
}

// acceptedRule is the content of an accepted rule.
type acceptedRule struct {
	name string
	edge
	paused bool
}

// acceptedRules lists the statements of all accepted rules, sorted by name.
func (rs *RuleSet) acceptedRules() []acceptedRule {
	list := make([]acceptedRule, 0, len(rs.rules))
	for _, r := range rs.rules {
		if r.Reason == Accepted {
			_, paused := rs.paused[r.Name]
			list = append(list, acceptedRule{r.Name, edge{From: r.Parent, To: r.Child}, paused})
		}
	}
	return list
}
