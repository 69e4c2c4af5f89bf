package lint

import (
	"fmt"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// warnRecursion reports relations that conditions follow in a cycle of types. Objects may then nest deeper than engines
// follow them.
func (l *linter) warnRecursion() {
	c := typeCycles{number: map[*policy.Type]int{}, low: map[*policy.Type]int{}, circle: map[*policy.Type]int{}}
	for _, t := range l.policy.Types {
		if c.number[t] == 0 {
			c.visitType(t)
		}
	}
	for _, t := range l.policy.Types {
		for _, r := range followedRelations(t) {
			back := slices.IndexFunc(r.Targets, func(target *policy.Type) bool { return c.circle[target] == c.circle[t] })
			if back >= 0 {
				l.found.Add(r.Source.PlaceAt(r.At), policy.CodeDeepRecursion,
					fmt.Sprintf("relation %q of %q can lead through %q to ever more objects of its own type", r.Name, t.Name, r.Targets[back].Name),
					"keep objects less than 24 levels deep: OpenFGA answers with an error beyond, SpiceDB beyond 50")
			}
		}
	}
}

// typeCycles finds the types that lead to each other: Tarjan's strongly connected components.
type typeCycles struct {
	number, low, circle map[*policy.Type]int
	open                []*policy.Type
}

func (c *typeCycles) visitType(t *policy.Type) {
	c.number[t] = len(c.number) + 1
	c.low[t] = c.number[t]
	c.open = append(c.open, t)
	for _, r := range followedRelations(t) {
		for _, target := range r.Targets {
			if c.number[target] == 0 {
				c.visitType(target)
			}
			if c.circle[target] == 0 {
				c.low[t] = min(c.low[t], c.low[target])
			}
		}
	}
	if c.low[t] != c.number[t] {
		return
	}
	for {
		last := c.open[len(c.open)-1]
		c.open, c.circle[last] = c.open[:len(c.open)-1], c.number[t]
		if last == t {
			return
		}
	}
}

// followedRelations returns the relations of a type that conditions follow.
func followedRelations(t *policy.Type) []*policy.Relation {
	names := map[string]bool{}
	for _, b := range t.Bindings {
		for _, s := range b.Steps {
			names[s.Relation] = true
		}
	}
	var relations []*policy.Relation
	for _, r := range t.Relations {
		if names[r.Name] {
			relations = append(relations, r)
		}
	}
	return relations
}
