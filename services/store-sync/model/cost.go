package model

import (
	"fmt"
	"maps"
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"

	"github.com/entail-dev/entail/services/internal/components"
)

// maxCost bounds the cost of validating a model, here and in the server, to some tenths of a second. The unit is the
// copy of one entry of a map, about 40 nanoseconds.
const maxCost = 5_000_000

// validationCostError means that the validation of a model would take too long.
type validationCostError struct{ name definitionName }

func (e *validationCostError) Error() string {
	return fmt.Sprintf("with %s the model takes OpenFGA too long to validate, because there are too many ways "+
		"through other relations: refer to fewer relations, and to each only once", e.name)
}

// costEstimator estimates the cost of validation.
//
// OpenFGA walks from every relation through all relations it refers to, twice. The first walk finds circles, the second
// finds a subject that could have the relation. A walk does not remember other branches, so its time can grow
// exponentially with the size of the model. Afterwards OpenFGA builds a weighted graph, which is slow if many relations
// depend on each other mutually.
type costEstimator struct {
	relations map[definitionName]relationDefinition
	circles   map[definitionName]*cycleWalkCost
	// loop is the first relation found that is defined by itself.
	loop definitionName
	// groups finds the groups of relations that depend on each other.
	groups *components.StronglyConnectedFinder[definitionName]
	spent  int
}

// checkValidationCost returns an error if validating the model would cost too much, or if a relation is defined by itself.
func checkValidationCost(m *openfgav1.AuthorizationModel) error {
	return newCostEstimator(m).checkTotalCost()
}

func newCostEstimator(m *openfgav1.AuthorizationModel) *costEstimator {
	c := &costEstimator{relations: map[definitionName]relationDefinition{}, circles: map[definitionName]*cycleWalkCost{}}
	c.groups = components.NewStronglyConnectedFinder(c.referencedRelations)
	for _, t := range m.GetTypeDefinitions() {
		maps.Copy(c.relations, relationsOfType(t))
	}
	return c
}

func (c *costEstimator) checkTotalCost() error {
	for _, n := range slices.SortedFunc(maps.Keys(c.relations), definitionName.compareName) {
		circle, ok := c.cycleSearchCost(n)
		if !ok {
			return &typesystem.InvalidRelationError{ObjectType: c.loop.typ, Relation: c.loop.rel, Cause: typesystem.ErrCycle}
		}
		c.spent += circle.entries + c.componentsCost(n)
		c.searchEntrypoint(n, c.relations[n].rewrite, visitedRelations{})
		if c.spent > maxCost {
			return &validationCostError{n}
		}
	}
	return nil
}

// referencedRelations returns the relations to which a relation refers, each as often as it does.
func (c *costEstimator) referencedRelations(n definitionName) []definitionName {
	var all []definitionName
	d := c.relations[n]
	for _, t := range d.types {
		if t.GetRelation() != "" {
			all = append(all, definitionName{typ: t.GetType(), rel: t.GetRelation()})
		}
	}
	forEachRewrite(d.rewrite, func(node *openfgav1.Userset) {
		if to := node.GetComputedUserset(); to != nil {
			all = append(all, definitionName{typ: n.typ, rel: to.GetRelation()})
		}
		if to := node.GetTupleToUserset(); to != nil {
			for _, t := range c.relations[definitionName{typ: n.typ, rel: to.GetTupleset().GetRelation()}].types {
				all = append(all, definitionName{typ: t.GetType(), rel: to.GetComputedUserset().GetRelation()})
			}
		}
	})
	return all
}

// cycleWalkCost is the cost of the walk for circles from a relation. It counts the steps, and the copied entries of the map of
// visited relations. The map grows with the distance.
type cycleWalkCost struct {
	steps, entries int
	done           bool
}

// cycleSearchCost returns the cost of the walk for circles from a relation, and false if a circle exists.
func (c *costEstimator) cycleSearchCost(n definitionName) (*cycleWalkCost, bool) {
	if w, known := c.circles[n]; known {
		if !w.done {
			c.loop = n
		}
		return w, w.done
	}
	w, ok := &cycleWalkCost{}, true
	c.circles[n] = w
	forEachRewrite(c.relations[n].rewrite, func(node *openfgav1.Userset) {
		w.steps, w.entries = w.steps+1, w.entries+1
		if to := node.GetComputedUserset(); to != nil && ok {
			var next *cycleWalkCost
			next, ok = c.cycleSearchCost(definitionName{typ: n.typ, rel: to.GetRelation()})
			w.steps = min(w.steps+next.steps, maxCost)
			w.entries = min(w.entries+next.entries+next.steps, maxCost)
		}
	})
	w.done = ok
	return w, ok
}

// visitedRelations holds the relations on a walk by type, and reports for each whether the walk found a subject there.
type visitedRelations map[string]map[string]bool

// searchEntrypoint repeats the walk that searches for a subject that could have the relation, and counts its cost.
func (c *costEstimator) searchEntrypoint(at definitionName, rewrite *openfgav1.Userset, before visitedRelations) bool {
	if c.spent > maxCost {
		return true
	}
	c.spent += 10 + len(before)
	switch rewrite.GetUserset().(type) {
	case *openfgav1.Userset_Union:
		return slices.ContainsFunc(childUsersets(rewrite), func(child *openfgav1.Userset) bool { return c.searchEntrypoint(at, child, before) })
	case *openfgav1.Userset_Intersection, *openfgav1.Userset_Difference:
		return !slices.ContainsFunc(childUsersets(rewrite), func(child *openfgav1.Userset) bool { return !c.searchEntrypoint(at, child, before) })
	}
	seen := maps.Clone(before)
	if seen[at.typ] == nil {
		seen[at.typ] = map[string]bool{}
	}
	seen[at.typ][at.rel] = false // The inner map is shared, so earlier steps on this type see it too.
	switch r := rewrite.GetUserset().(type) {
	case *openfgav1.Userset_ComputedUserset:
		return c.searchReferencedRelation(definitionName{typ: at.typ, rel: r.ComputedUserset.GetRelation()}, seen)
	case *openfgav1.Userset_TupleToUserset:
		tupleset := definitionName{typ: at.typ, rel: r.TupleToUserset.GetTupleset().GetRelation()}
		return slices.ContainsFunc(c.relations[tupleset].types, func(t *openfgav1.RelationReference) bool {
			return c.searchReferencedRelation(definitionName{typ: t.GetType(), rel: r.TupleToUserset.GetComputedUserset().GetRelation()}, seen)
		})
	default:
		return c.searchAssignableSubjects(at, seen)
	}
}

// searchReferencedRelation continues to a relation unless it was visited or does not exist.
func (c *costEstimator) searchReferencedRelation(to definitionName, seen visitedRelations) bool {
	if found, known := seen[to.typ][to.rel]; known {
		return found
	}
	d, exists := c.relations[to]
	return exists && c.searchEntrypoint(to, d.rewrite, seen)
}

// searchAssignableSubjects continues to the subjects that can be assigned to a relation.
func (c *costEstimator) searchAssignableSubjects(at definitionName, seen visitedRelations) bool {
	return slices.ContainsFunc(c.relations[at].types, func(t *openfgav1.RelationReference) bool {
		if t.GetRelation() == "" {
			seen[at.typ][at.rel] = true
			return true
		}
		to := definitionName{typ: t.GetType(), rel: t.GetRelation()}
		_, known := seen[to.typ][to.rel]
		return !known && c.searchEntrypoint(to, c.relations[to].rewrite, seen)
	})
}

// componentsCost returns the cost of the groups of relations that a relation reaches. It omits groups that were counted
// before. The relations of a group depend on each other.
func (c *costEstimator) componentsCost(n definitionName) int {
	sum := 0
	for _, group := range c.groups.CollectNewFrom(n) {
		sum = min(sum+c.groupCost(group), maxCost+1)
	}
	return sum
}

// groupCost returns the cost of a group. The formula fits measurements of several thousand random groups. It grows with
// the square of the number of relations, with the references among them, and with the references beyond those of a
// simple ring.
func (c *costEstimator) groupCost(group []definitionName) int {
	inside, in := 0, map[definitionName]bool{}
	for _, n := range group {
		in[n] = true
	}
	for _, n := range group {
		for _, to := range c.referencedRelations(n) {
			if in[to] {
				inside++
			}
		}
	}
	return len(group) * len(group) * inside * max(inside-len(group)+1, 0) / 16
}
