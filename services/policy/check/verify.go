package check

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// verify checks the conditions of every binding on every type of the binding.
func (c *checker) verify() {
	for _, b := range c.bindings {
		for _, s := range b.steps {
			c.verifyStep(b, s)
		}
	}
}

// verifyStep checks that each type has the relation, and that each target of the relation has the action of the
// condition.
func (c *checker) verifyStep(b *binding, s step) {
	var without, dead []string
	for _, t := range b.members {
		r := t.relation(s.Relation)
		switch {
		case r == nil:
			without = append(without, quote(t.Name))
		case s.action != nil && len(dead) <= mostWords && !c.boundOnTargets(r, s.action):
			dead = typesWithoutAction(dead, r, s.Action)
		}
	}
	place := b.Source.At(s.At)
	if len(without) > 0 {
		c.reportAbsent(place, policy.CodeUnknownRelation,
			"relation "+quote(s.Relation)+" is not on "+firstWords(without)+", to which "+quote(b.Action)+" is bound",
			"declare the relationship there, or take another relation")
	}
	if len(dead) > 0 {
		c.reportAbsent(place, policy.CodeActionNotOnTarget, "action "+quote(s.Action)+" is not bound where the relation leads: "+firstWords(dead),
			"bind it to those types too, or take them out of the relation's targets")
	}
}

// typesWithoutAction appends the paths along a relation to types without the action, until a finding has enough of them.
func typesWithoutAction(ways []string, r *relation, action string) []string {
	for _, t := range r.Targets {
		if len(ways) > mostWords {
			break
		}
		if t.Binding(action) == nil {
			ways = append(ways, quote(r.of.Name)+" via "+quote(r.Name)+" to "+quote(t.Name))
		}
	}
	return ways
}

func (c *checker) boundOnTargets(r *relation, a *action) bool {
	for _, target := range r.refs {
		if target.t != nil && !target.t.bound.has(a.number) || target.u != nil && !c.boundOnAll(target.u).has(a.number) {
			return false
		}
	}
	return true
}

// boundOnAll returns the actions that are bound to every member of a union.
func (c *checker) boundOnAll(u *union) bits {
	if u.all == nil {
		u.all = newBits(len(c.allActions))
		for i, t := range u.members {
			if i == 0 {
				u.all.or(t.bound)
			} else {
				u.all.and(t.bound)
			}
		}
	}
	return u.all
}

// relation returns the relation of that name, or nil.
func (t *typ) relation(name string) *relation {
	i, found := slices.BinarySearchFunc(t.relations, name, func(r *relation, name string) int { return strings.Compare(r.Name, name) })
	if !found {
		return nil
	}
	return t.relations[i]
}
