package infer

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/entail-dev/entail/services/implied-role/closure"
)

// Rulebook is the rules of one namespace with all that follows from them. It never
// changes, and may be used by many at a time.
type Rulebook struct {
	rules []Judged // by name
	limit int
	graph *closure.Graph[Role]
	*limits
	*answers
}

// answers are computed when first asked for.
type answers struct {
	mu sync.Mutex
	// offered is what comes with a role.
	offered map[Role][]offer
	// kept is how many offers these are.
	kept int
	// named are the rules that hold, by what they say.
	named map[edge][]string
}

// limits is which rules would bring about too many bindings.
type limits struct {
	// paused rules by name, with about how many bindings each would bring about.
	paused map[string]int
	// free is what the rules say without the paused ones.
	free *closure.Graph[Role]
}

// edge is a rule as the graph sees it.
type edge = closure.Edge[Role]

// NewRulebook judges rules and computes what follows from those that hold.
func NewRulebook(namespace string, rules []Rule, p Policy) *Rulebook {
	b := &Rulebook{rules: p.judgeAll(namespace, rules), limit: p.MaxGenerated, answers: &answers{offered: map[Role][]offer{}}}
	b.graph = closure.New(b.edges(nil), Role.Compare)
	b.limits = &limits{free: b.graph}
	return b
}

// edges lists the rules that hold, but for those given.
func (b *Rulebook) edges(without map[string]int) []edge {
	edges := make([]edge, 0, len(b.rules))
	for _, r := range b.rules {
		if _, ok := without[r.Name]; r.Reason == Accepted && !ok {
			edges = append(edges, edge{From: r.Parent, To: r.Child})
		}
	}
	return edges
}

// Limited is b for a namespace in which load tells how many bindings are sources and
// grant a role, and sources how many there are in all. A rule that would bring about too
// many bindings is paused: what it has brought about stays, and nothing is added.
func (b *Rulebook) Limited(sources int, load func(Role) int) *Rulebook {
	limited := *b
	limited.limits = &limits{free: b.graph}
	if sources*len(b.graph.Nodes()) <= b.limit {
		return &limited
	}
	holders := b.graph.Gather(load)
	for _, r := range b.rules {
		if r.Reason != Accepted {
			continue
		}
		if n := holders(r.Parent) * (1 + b.graph.Count(r.Child)); n > b.limit {
			if limited.paused == nil {
				limited.paused = map[string]int{}
			}
			limited.paused[r.Name] = n
		}
	}
	if len(limited.paused) > 0 {
		limited.free = closure.New(b.edges(limited.paused), Role.Compare)
	}
	return &limited
}

// Same reports whether b says the same as another, and was made of the same rules.
func (b *Rulebook) Same(other *Rulebook) bool {
	return other != nil && b.graph == other.graph && maps.Equal(b.paused, other.paused)
}

// Rules lists all rules by name.
func (b *Rulebook) Rules() []Judged { return b.rules }

// Roles lists the roles that rules which hold speak of, in order.
func (b *Rulebook) Roles() []Role { return b.graph.Nodes() }

// Parents lists the roles that imply others, in order.
func (b *Rulebook) Parents() iter.Seq[Role] {
	return func(yield func(Role) bool) {
		for _, r := range b.graph.Nodes() {
			if len(b.graph.Next(r)) > 0 && !yield(r) {
				return
			}
		}
	}
}

// Implied lists the roles that come with r, in order.
func (b *Rulebook) Implied(r Role) []Role { return slices.Collect(b.graph.From(r)) }

// Count is how many roles come with r.
func (b *Rulebook) Count(r Role) int { return b.graph.Count(r) }

// Direct lists the roles that come with r by a single rule, in order.
func (b *Rulebook) Direct(r Role) []Role { return b.graph.Next(r) }

// Implying lists the roles that r comes with, in order.
func (b *Rulebook) Implying(r Role) []Role { return slices.Collect(b.graph.To(r)) }

// Implies reports whether child comes with r.
func (b *Rulebook) Implies(r, child Role) bool { return b.graph.Reaches(r, child) }

// Paths lists up to limit ways in which child comes with r, shortest first; more means
// that there are, or may be, others.
func (b *Rulebook) Paths(r, child Role, limit int) (paths [][]Role, more bool) {
	return b.graph.AllPaths(r, child, limit)
}

// Path is the first of the shortest ways in which child comes with r.
func (b *Rulebook) Path(r, child Role) []Role { return b.graph.Path(r, child) }

// Between lists by name the rules that hold and say that parent implies child.
func (b *Rulebook) Between(parent, child Role) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.named == nil {
		b.named = make(map[edge][]string, len(b.rules))
		for _, r := range b.rules {
			if e := (edge{From: r.Parent, To: r.Child}); r.Reason == Accepted {
				b.named[e] = append(b.named[e], r.Name)
			}
		}
	}
	return b.named[edge{From: parent, To: child}]
}

// With lists by name the rules that hold and have this parent.
func (b *Rulebook) With(parent Role) []string {
	var names []string
	for _, child := range b.Direct(parent) {
		names = append(names, b.Between(parent, child)...)
	}
	slices.Sort(names)
	return names
}

// Cycles lists the sets of roles that all imply each other.
func (b *Rulebook) Cycles() [][]Role { return b.graph.Cycles() }

// Changed lists the roles that may imply something else, or in another way, than they did
// by the rulebook before.
func (b *Rulebook) Changed(before *Rulebook) []Role {
	var parents []Role
	for was, is := before.statements(), b.statements(); len(was)+len(is) > 0; {
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
	roles := append(before.graph.Upstream(slices.Values(parents)), b.graph.Upstream(slices.Values(parents))...)
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
func (b *Rulebook) statements() []statement {
	list := make([]statement, 0, len(b.rules))
	for _, r := range b.rules {
		if r.Reason == Accepted {
			_, paused := b.paused[r.Name]
			list = append(list, statement{r.Name, edge{From: r.Parent, To: r.Child}, paused})
		}
	}
	return list
}
