package diff

import (
	"cmp"
	"fmt"

	"github.com/entail-dev/entail/services/policy"
)

func (d *policyDiffer) diffRelations(o, n *policy.Type) {
	followed := d.followedRelations(n)
	for was, is := range pairByName(o.Relations, n.Relations, func(r *policy.Relation) string { return r.Name }) {
		switch {
		case was == nil:
			d.addChange(PolicyChange{
				Class: Harmless, What: Relation, Type: n.Name, Name: is.Name, New: is.Source.PlaceAt(is.At),
				Message: fmt.Sprintf("relation %s of %s is new, to %s", is.Name, n.Name, countText(len(is.Targets), "type")),
			})
		case is == nil:
			d.addChange(PolicyChange{
				Class: BreakingForData, What: Relation, Type: o.Name, Name: was.Name, Old: was.Source.PlaceAt(was.At),
				Message: fmt.Sprintf("relation %s of %s is removed: stored relationships in it would be orphaned", was.Name, o.Name),
			})
		default:
			d.diffTargets(n.Name, was, is, followed[is.Name])
		}
	}
}

// diffTargets compares the targets of a relation. followed is true if decisions depend on the relation.
func (d *policyDiffer) diffTargets(typeName string, o, n *policy.Relation, followed bool) {
	for was, is := range pairByName(o.Targets, n.Targets, func(t *policy.Type) string { return t.Name }) {
		if was != nil && is != nil {
			continue
		}
		target := cmp.Or(was, is).Name
		c := PolicyChange{What: Target, Type: typeName, Name: n.Name + ": " + target, Old: placeOfTarget(o, target, was), New: placeOfTarget(n, target, is)}
		switch {
		case is == nil:
			c.Class = BreakingForData
			c.Message = fmt.Sprintf("relation %s of %s no longer leads to %s: stored relationships would be orphaned", n.Name, typeName, target)
		case followed:
			c.Class = Widening
			c.Message = fmt.Sprintf("relation %s of %s may lead to %s: users with access there may get access here", n.Name, typeName, target)
		default:
			c.Class = Harmless
			c.Message = fmt.Sprintf("relation %s of %s may lead to %s; no action follows it", n.Name, typeName, target)
		}
		d.addChange(c)
	}
}

// placeOfTarget returns the place where the relation names the target. If it names a union, it returns the place of the
// relation.
func placeOfTarget(r *policy.Relation, target string, there *policy.Type) policy.Place {
	if there == nil {
		return policy.Place{}
	}
	for _, reference := range r.References {
		if reference.Name == target {
			return r.Source.PlaceAt(reference.At)
		}
	}
	return r.Source.PlaceAt(r.At)
}

// followedRelations returns the relations of the new type that conditions or role bindings follow.
func (d *policyDiffer) followedRelations(t *policy.Type) map[string]bool {
	relations := map[string]bool{}
	if o := d.after.Options; t.Name == o.RoleType {
		relations[o.RoleRelation] = true
	}
	for _, b := range t.Bindings {
		for _, s := range b.Steps {
			relations[s.Relation] = true
		}
	}
	return relations
}
