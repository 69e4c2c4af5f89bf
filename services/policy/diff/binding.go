package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/words"
)

func (d *differ) bindings(o, n *policy.Type) {
	for was, is := range pairByName(o.Bindings, n.Bindings, func(b *policy.Binding) string { return b.Action }) {
		switch {
		case was == nil:
			d.add(Change{
				Class: Widening, What: Binding, Type: n.Name, Name: is.Action, New: is.Source.At(is.At),
				Message: fmt.Sprintf("%s can be allowed on %s: %s", is.Action, n.Name, words.List(ways(conditions(is, d.after.Options)), "or")),
			})
		case is == nil:
			d.reportRemovedBinding(o, was)
		default:
			d.conditions(n.Name, was, is)
		}
	}
}

func (d *differ) reportRemovedBinding(t *policy.Type, was *policy.Binding) {
	c := Change{
		Class: Narrowing, What: Binding, Type: t.Name, Name: was.Action, Old: was.Source.At(was.At),
		Message: fmt.Sprintf("nobody has %s on %s any more", was.Action, t.Name),
	}
	if was.RoleBinding {
		c.Class = BreakingForData
		c.Message += orphanedRoleBindings(d.before.Options.RoleRelationOf(was.Action))
	}
	d.add(c)
}

// orphanedRoleBindings returns the effect on role bindings, which are stored relationships like others.
func orphanedRoleBindings(relation string) string {
	return fmt.Sprintf(", and stored role bindings in %s would be orphaned", relation)
}

func (d *differ) conditions(typeName string, o, n *policy.Binding) {
	older, newer := conditions(o, d.before.Options), conditions(n, d.after.Options)
	for was, is := range pairByName(older, newer, func(c *condition) string { return c.key }) {
		c := Change{What: Condition, Type: typeName}
		switch {
		case was == nil:
			c.Class, c.Name, c.New = Widening, n.Action+": "+is.key, n.Source.At(is.at)
			c.Message = fmt.Sprintf("%s on %s can be allowed in one more way: %s", n.Action, typeName, is.way)
		case is == nil:
			c.Class, c.Name, c.Old = Narrowing, n.Action+": "+was.key, o.Source.At(was.at)
			c.Message = fmt.Sprintf("%s on %s is no longer allowed %s", n.Action, typeName, was.way)
			if was.relation != "" {
				c.Class = BreakingForData
				c.Message += orphanedRoleBindings(was.relation)
			}
		default:
			continue
		}
		d.add(c)
	}
}

// condition is one way to get an action. Two conditions with the same meaning have the same key in both policies.
type condition struct {
	key, way string
	// relation holds role bindings; it is empty for a step to other resources.
	relation string
	at       policy.Position
}

// conditions returns the conditions of a binding, sorted by key.
func conditions(b *policy.Binding, o policy.Options) []*condition {
	var all []*condition
	if b.RoleBinding {
		relation := o.RoleRelationOf(b.Action)
		all = append(all, &condition{key: "role binding in " + relation, way: "by a role binding", relation: relation, at: b.At})
	}
	for _, s := range b.Steps {
		all = append(all, &condition{
			key: s.Relation + "->" + s.Action, way: fmt.Sprintf("to who has %s on its %s", s.Action, s.Relation), at: s.At,
		})
	}
	slices.SortFunc(all, func(x, y *condition) int { return strings.Compare(x.key, y.key) })
	return all
}

func ways(conditions []*condition) []string {
	words := make([]string, len(conditions))
	for i, c := range conditions {
		words[i] = c.way
	}
	return words
}
