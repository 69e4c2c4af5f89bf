package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

const (
	objectsOfType = 3
	// maxDepth is the depth limit of SpiceDB; that of OpenFGA is half of it. maxWalks bounds the steps of both, so that
	// cycles with too many paths are left out.
	maxDepth, maxWalks = 50, 2_000
)

// randomWorld relates objects at random, with cycles. The same seed gives the same world.
func (s plainPolicy) randomWorld(random *rand.Rand) plainPolicyWithTuples {
	objects := s.someObjects()
	of := func(typ string) string { return fmt.Sprintf("%s:%d", typ, random.IntN(objectsOfType)) }
	var facts []relationshipTuple
	for _, on := range sorted(s.targets) {
		for range 2 * objectsOfType {
			targets := s.targets[on]
			facts = append(facts, relationshipTuple{of(on.of), on.name, of(targets[random.IntN(len(targets))])})
		}
	}
	for _, on := range sorted(s.bindings) {
		for _, c := range s.bindings[on].Conditions {
			if c.RoleBinding {
				facts = append(facts, relationshipTuple{of(on.of), on.name + "_role", of("role") + "#subject"})
			}
		}
	}
	facts = unique(facts)
	random.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
	for {
		w := s.world(facts, objects)
		if _, few := w.walks(maxDepth, maxWalks); few {
			return w
		}
		facts = facts[:len(facts)*7/8]
	}
}

// someObjects returns a few objects of each type.
func (s plainPolicy) someObjects() []string {
	types := map[string]bool{}
	for on, targets := range s.targets {
		types[on.of] = true
		for _, target := range targets {
			types[target] = true
		}
	}
	for on := range s.bindings {
		types[on.of] = true
	}
	var objects []string
	for _, typ := range slices.Sorted(maps.Keys(types)) {
		for i := range objectsOfType {
			objects = append(objects, fmt.Sprintf("%s:%d", typ, i))
		}
	}
	return objects
}

// questions returns some questions about all users: as many with the answer yes as with no, if enough exist.
func (w plainPolicyWithTuples) questions(random *rand.Rand, most int) []decision {
	var yes, no []decision
	for _, typ := range w.targets[typeAndName{"role", "subject"}] {
		for i := range objectsOfType {
			user := fmt.Sprintf("%s:%d", typ, i)
			may := w.allowed(user)
			for p := range w.next {
				if q := (decision{relationshipTuple{p.of, p.name, user}, may[p]}); q.Allowed {
					yes = append(yes, q)
				} else {
					no = append(no, q)
				}
			}
		}
	}
	var some []decision
	for _, of := range [][]decision{yes, no} {
		slices.SortFunc(of, func(a, b decision) int { return compareFacts(a.relationshipTuple, b.relationshipTuple) })
		random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		some = append(some, of[:min(len(of), most/2)]...)
	}
	return some
}

func unique(facts []relationshipTuple) []relationshipTuple {
	slices.SortFunc(facts, compareFacts)
	return slices.Compact(facts)
}

func compareFacts(a, b relationshipTuple) int {
	return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.User, b.User))
}

// sorted returns the keys of a map in a fixed order.
func sorted[V any](m map[typeAndName]V) []typeAndName {
	return slices.SortedFunc(maps.Keys(m), func(a, b typeAndName) int { return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.name, b.name)) })
}
