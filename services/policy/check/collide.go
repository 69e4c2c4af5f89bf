package check

import (
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// findCollisions reports names that one type would have twice. A type has one namespace for its relations, its actions,
// and the relations that hold role bindings.
func (c *checker) findCollisions() {
	for _, t := range c.types {
		for _, r := range t.relations {
			c.relationCollides(t, r)
		}
	}
	for _, b := range c.bindings {
		base := c.actions[strings.TrimSuffix(b.Action, c.options.RoleSuffix)]
		if b.action == nil || base == nil || base == b.action {
			continue
		}
		for _, t := range b.members {
			if t.granted.has(base.number) {
				message := "action " + quote(b.Action) + " has the name of the relation for role bindings of " + quote(base.Name)
				c.reportCollision(b.Source.At(b.At), t, message, t.Binding(base.Name))
			}
		}
	}
}

func (c *checker) relationCollides(t *typ, r *relation) {
	if a := c.actions[r.Name]; a != nil && t.bound.has(a.number) {
		c.reportCollision(t.Source.At(r.At), t, "relation "+quote(r.Name)+" has the name of an action", t.Binding(a.Name))
	}
	base, found := strings.CutSuffix(r.Name, c.options.RoleSuffix)
	if a := c.actions[base]; found && a != nil && t.granted.has(a.number) {
		c.reportCollision(t.Source.At(r.At), t, "relation "+quote(r.Name)+" has the name of the relation for role bindings of "+quote(a.Name), t.Binding(a.Name))
	}
}

func (c *checker) reportCollision(place policy.Place, t *typ, message string, other *policy.Binding) {
	found := c.findings.Add(place, policy.CodeCollision, "in type "+quote(t.Name)+" "+message, "rename one of them")
	if other != nil {
		found.Also(other.Source.At(other.At), "the binding of the action")
	}
}
