package model

import (
	"fmt"
	"maps"
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
)

// maxCost bounds the cost of validating a model, here and in the server, to some tenths of a second. The unit is the
// copy of one entry of a map, about 40 nanoseconds.
const maxCost = 5_000_000

// costError means that the validation of a model would take too long.
type costError struct{ name name }

func (e *costError) Error() string {
	return fmt.Sprintf("with %s the model takes OpenFGA too long to validate, because there are too many ways "+
		"through other relations: refer to fewer relations, and to each only once", e.name)
}

// cost estimates the cost of validation.
//
// OpenFGA walks from every relation through all relations it refers to, twice. The first walk finds circles, the second
// finds a subject that could have the relation. A walk does not remember other branches, so its time can grow
// exponentially with the size of the model. Afterwards OpenFGA builds a weighted graph, which is slow if many relations
// depend on each other mutually.
type cost struct {
	relations map[name]definition
	circles   map[name]*walk
	// loop is the first relation found that is defined by itself.
	loop  name
	knots knots
	spent int
}

// checkAffordable returns an error if validating the model would cost too much, or if a relation is defined by itself.
func checkAffordable(m *openfgav1.AuthorizationModel) error { return newCost(m).countStep() }

func newCost(m *openfgav1.AuthorizationModel) *cost {
	c := &cost{relations: map[name]definition{}, circles: map[name]*walk{}}
	c.knots = knots{references: c.referencesOf, index: map[name]int{}, open: map[name]bool{}}
	for _, t := range m.GetTypeDefinitions() {
		maps.Copy(c.relations, definitionsOf(t))
	}
	return c
}

func (c *cost) countStep() error {
	for _, n := range slices.SortedFunc(maps.Keys(c.relations), name.compareName) {
		circle, ok := c.circleCost(n)
		if !ok {
			return &typesystem.InvalidRelationError{ObjectType: c.loop.typ, Relation: c.loop.rel, Cause: typesystem.ErrCycle}
		}
		c.spent += circle.entries + c.knots.groupCost(n)
		c.searchEntry(n, c.relations[n].rewrite, visited{})
		if c.spent > maxCost {
			return &costError{n}
		}
	}
	return nil
}

// referencesOf returns the relations to which a relation refers, each as often as it does.
func (c *cost) referencesOf(n name) []name {
	var all []name
	d := c.relations[n]
	for _, t := range d.types {
		if t.GetRelation() != "" {
			all = append(all, name{typ: t.GetType(), rel: t.GetRelation()})
		}
	}
	eachNode(d.rewrite, func(node *openfgav1.Userset) {
		if to := node.GetComputedUserset(); to != nil {
			all = append(all, name{typ: n.typ, rel: to.GetRelation()})
		}
		if to := node.GetTupleToUserset(); to != nil {
			for _, t := range c.relations[name{typ: n.typ, rel: to.GetTupleset().GetRelation()}].types {
				all = append(all, name{typ: t.GetType(), rel: to.GetComputedUserset().GetRelation()})
			}
		}
	})
	return all
}

// walk is the cost of the walk for circles from a relation. It counts the steps, and the copied entries of the map of
// visited relations. The map grows with the distance.
type walk struct {
	steps, entries int
	done           bool
}

// circleCost returns the cost of the walk for circles from a relation, and false if a circle exists.
func (c *cost) circleCost(n name) (*walk, bool) {
	if w, known := c.circles[n]; known {
		if !w.done {
			c.loop = n
		}
		return w, w.done
	}
	w, ok := &walk{}, true
	c.circles[n] = w
	eachNode(c.relations[n].rewrite, func(node *openfgav1.Userset) {
		w.steps, w.entries = w.steps+1, w.entries+1
		if to := node.GetComputedUserset(); to != nil && ok {
			var next *walk
			next, ok = c.circleCost(name{typ: n.typ, rel: to.GetRelation()})
			w.steps = min(w.steps+next.steps, maxCost)
			w.entries = min(w.entries+next.entries+next.steps, maxCost)
		}
	})
	w.done = ok
	return w, ok
}

// visited holds the relations on a walk by type, and reports for each whether the walk found a subject there.
type visited map[string]map[string]bool

// searchEntry repeats the walk that searches for a subject that could have the relation, and counts its cost.
func (c *cost) searchEntry(at name, rewrite *openfgav1.Userset, before visited) bool {
	if c.spent > maxCost {
		return true
	}
	c.spent += 10 + len(before)
	switch rewrite.GetUserset().(type) {
	case *openfgav1.Userset_Union:
		return slices.ContainsFunc(childUsersets(rewrite), func(child *openfgav1.Userset) bool { return c.searchEntry(at, child, before) })
	case *openfgav1.Userset_Intersection, *openfgav1.Userset_Difference:
		return !slices.ContainsFunc(childUsersets(rewrite), func(child *openfgav1.Userset) bool { return !c.searchEntry(at, child, before) })
	}
	seen := maps.Clone(before)
	if seen[at.typ] == nil {
		seen[at.typ] = map[string]bool{}
	}
	seen[at.typ][at.rel] = false // The inner map is shared, so earlier steps on this type see it too.
	switch r := rewrite.GetUserset().(type) {
	case *openfgav1.Userset_ComputedUserset:
		return c.followRelation(name{typ: at.typ, rel: r.ComputedUserset.GetRelation()}, seen)
	case *openfgav1.Userset_TupleToUserset:
		tupleset := name{typ: at.typ, rel: r.TupleToUserset.GetTupleset().GetRelation()}
		return slices.ContainsFunc(c.relations[tupleset].types, func(t *openfgav1.RelationReference) bool {
			return c.followRelation(name{typ: t.GetType(), rel: r.TupleToUserset.GetComputedUserset().GetRelation()}, seen)
		})
	default:
		return c.searchDirect(at, seen)
	}
}

// followRelation continues to a relation unless it was visited or does not exist.
func (c *cost) followRelation(to name, seen visited) bool {
	if found, known := seen[to.typ][to.rel]; known {
		return found
	}
	d, exists := c.relations[to]
	return exists && c.searchEntry(to, d.rewrite, seen)
}

// searchDirect continues to the subjects that can be assigned to a relation.
func (c *cost) searchDirect(at name, seen visited) bool {
	return slices.ContainsFunc(c.relations[at].types, func(t *openfgav1.RelationReference) bool {
		if t.GetRelation() == "" {
			seen[at.typ][at.rel] = true
			return true
		}
		to := name{typ: t.GetType(), rel: t.GetRelation()}
		_, known := seen[to.typ][to.rel]
		return !known && c.searchEntry(to, c.relations[to].rewrite, seen)
	})
}

// knots finds the groups of relations that depend on each other mutually. These are the strongly connected components
// of their references, found by Tarjan's algorithm.
type knots struct {
	references func(name) []name
	index      map[name]int
	// path and open hold the relations whose group is not complete yet.
	path []name
	open map[name]bool
	sum  int
}

// groupCost returns the cost of the groups that can be reached from a relation and were not counted before.
func (k *knots) groupCost(n name) int {
	k.sum = 0
	if k.index[n] == 0 {
		k.visitName(n)
	}
	return k.sum
}

// visitName returns the smallest index in the group of n.
func (k *knots) visitName(n name) int {
	lowest := len(k.index) + 1
	k.index[n] = lowest
	k.path, k.open[n] = append(k.path, n), true
	for _, to := range k.references(n) {
		if k.index[to] == 0 {
			lowest = min(lowest, k.visitName(to))
		} else if k.open[to] {
			lowest = min(lowest, k.index[to])
		}
	}
	if lowest == k.index[n] {
		start := slices.Index(k.path, n)
		k.completeGroup(k.path[start:])
		k.path = k.path[:start]
	}
	return lowest
}

// completeGroup adds the cost of a group. The formula fits measurements of some thousand random groups. It grows with the
// square of the number of relations, with the references among them, and with the references beyond those of a simple
// ring.
func (k *knots) completeGroup(group []name) {
	inside := 0
	for _, n := range group {
		for _, to := range k.references(n) {
			if k.open[to] && k.index[to] >= k.index[group[0]] {
				inside++
			}
		}
	}
	for _, n := range group {
		k.open[n] = false
	}
	k.sum = min(k.sum+len(group)*len(group)*inside*max(inside-len(group)+1, 0)/16, maxCost+1)
}
