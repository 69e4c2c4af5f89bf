package check

import (
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// reportCollisions reports names that one type would have twice. A type has one namespace for its relations, its
// actions, and the relations that hold role bindings.
func (c *checker) reportCollisions() {
	for _, t := range c.types {
		for _, r := range t.relations {
			c.reportRelationCollision(t, r)
		}
	}
	for _, b := range c.bindings {
		base := c.actions[strings.TrimSuffix(b.Action, c.options.RoleSuffix)]
		if b.action == nil || base == nil || base == b.action {
			continue
		}
		for _, t := range b.members {
			if t.granted.has(base.number) {
				message := "action " + quoteName(b.Action) + " has the name of the relation for role bindings of " + quoteName(base.Name)
				c.reportCollision(b.Source.PlaceAt(b.At), t, message, t.FindBinding(base.Name))
			}
		}
	}
}

func (c *checker) reportRelationCollision(t *draftType, r *draftRelation) {
	if a := c.actions[r.Name]; a != nil && t.bound.has(a.number) {
		c.reportCollision(t.Source.PlaceAt(r.At), t, "relation "+quoteName(r.Name)+" has the name of an action", t.FindBinding(a.Name))
	}
	base, found := strings.CutSuffix(r.Name, c.options.RoleSuffix)
	if a := c.actions[base]; found && a != nil && t.granted.has(a.number) {
		c.reportCollision(t.Source.PlaceAt(r.At), t,
			"relation "+quoteName(r.Name)+" has the name of the relation for role bindings of "+quoteName(a.Name), t.FindBinding(a.Name))
	}
}

func (c *checker) reportCollision(place policy.Place, t *draftType, message string, other *policy.Binding) {
	found := c.findings.Add(place, policy.CodeCollision, "in type "+quoteName(t.Name)+" "+message, "rename one of them")
	if other != nil {
		found.AddRelated(other.Source.PlaceAt(other.At), "the binding of the action")
	}
}
