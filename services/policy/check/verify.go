package check

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// reportInvalidConditions checks the conditions of every binding on every type of the binding.
func (c *checker) reportInvalidConditions() {
	for _, b := range c.bindings {
		for _, s := range b.steps {
			c.verifyStep(b, s)
		}
	}
}

// verifyStep checks that each type has the relation, and that each target of the relation has the action of the
// condition.
func (c *checker) verifyStep(b *draftBinding, s resolvedStep) {
	var without, dead []string
	for _, t := range b.members {
		r := t.relationNamed(s.Relation)
		switch {
		case r == nil:
			without = append(without, quoteName(t.Name))
		case s.action != nil && len(dead) <= maxWords && !c.isBoundOnTargets(r, s.action):
			dead = appendPathsWithoutAction(dead, r, s.Action)
		}
	}
	place := b.Source.PlaceAt(s.At)
	if len(without) > 0 {
		c.reportAbsent(place, policy.CodeUnknownRelation,
			"relation "+quoteName(s.Relation)+" is not on "+joinFirstWords(without)+", to which "+quoteName(b.Action)+" is bound",
			"declare the relationship there, or take another relation")
	}
	if len(dead) > 0 {
		c.reportAbsent(place, policy.CodeActionNotOnTarget, "action "+quoteName(s.Action)+" is not bound where the relation leads: "+joinFirstWords(dead),
			"bind it to those types too, or take them out of the relation's targets")
	}
}

// appendPathsWithoutAction appends the paths along a relation to types without the action, until a finding has enough of them.
func appendPathsWithoutAction(paths []string, r *draftRelation, action string) []string {
	for _, t := range r.Targets {
		if len(paths) > maxWords {
			break
		}
		if t.FindBinding(action) == nil {
			paths = append(paths, quoteName(r.of.Name)+" via "+quoteName(r.Name)+" to "+quoteName(t.Name))
		}
	}
	return paths
}

func (c *checker) isBoundOnTargets(r *draftRelation, a *draftAction) bool {
	for _, target := range r.refs {
		if target.t != nil && !target.t.bound.has(a.number) || target.u != nil && !c.actionsBoundOnAll(target.u).has(a.number) {
			return false
		}
	}
	return true
}

// actionsBoundOnAll returns the actions that are bound to every member of a union.
func (c *checker) actionsBoundOnAll(u *draftUnion) bitSet {
	if u.all == nil {
		u.all = newBitSet(len(c.allActions))
		for i, t := range u.members {
			if i == 0 {
				u.all.unionWith(t.bound)
			} else {
				u.all.intersectWith(t.bound)
			}
		}
	}
	return u.all
}

// relationNamed returns the relation of that name, or nil.
func (t *draftType) relationNamed(name string) *draftRelation {
	i, found := slices.BinarySearchFunc(t.relations, name, func(r *draftRelation, name string) int { return strings.Compare(r.Name, name) })
	if !found {
		return nil
	}
	return t.relations[i]
}
