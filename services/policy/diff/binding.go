package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/words"
)

func (d *policyDiffer) diffBindings(o, n *policy.Type) {
	for was, is := range pairByName(o.Bindings, n.Bindings, func(b *policy.Binding) string { return b.Action }) {
		switch {
		case was == nil:
			d.addChange(PolicyChange{
				Class: Widening, What: Binding, Type: n.Name, Name: is.Action, New: is.Source.PlaceAt(is.At),
				Message: fmt.Sprintf("%s can be allowed on %s: %s", is.Action, n.Name,
					words.JoinWords(conditionTexts(bindingConditions(is, d.after.Options)), "or")),
			})
		case is == nil:
			d.reportRemovedBinding(o, was)
		default:
			d.diffConditions(n.Name, was, is)
		}
	}
}

func (d *policyDiffer) reportRemovedBinding(t *policy.Type, was *policy.Binding) {
	c := PolicyChange{
		Class: Narrowing, What: Binding, Type: t.Name, Name: was.Action, Old: was.Source.PlaceAt(was.At),
		Message: fmt.Sprintf("nobody has %s on %s any more", was.Action, t.Name),
	}
	if was.RoleBinding {
		c.Class = BreakingForData
		c.Message += orphanedRoleBindingsText(d.before.Options.RoleRelationOf(was.Action))
	}
	d.addChange(c)
}

// orphanedRoleBindingsText returns the effect on role bindings, which are stored relationships like others.
func orphanedRoleBindingsText(relation string) string {
	return fmt.Sprintf(", and stored role bindings in %s would be orphaned", relation)
}

func (d *policyDiffer) diffConditions(typeName string, o, n *policy.Binding) {
	older, newer := bindingConditions(o, d.before.Options), bindingConditions(n, d.after.Options)
	for was, is := range pairByName(older, newer, func(c *bindingCondition) string { return c.key }) {
		c := PolicyChange{What: Condition, Type: typeName}
		switch {
		case was == nil:
			c.Class, c.Name, c.New = Widening, n.Action+": "+is.key, n.Source.PlaceAt(is.at)
			c.Message = fmt.Sprintf("%s on %s can be allowed in one more way: %s", n.Action, typeName, is.text)
		case is == nil:
			c.Class, c.Name, c.Old = Narrowing, n.Action+": "+was.key, o.Source.PlaceAt(was.at)
			c.Message = fmt.Sprintf("%s on %s is no longer allowed %s", n.Action, typeName, was.text)
			if was.relation != "" {
				c.Class = BreakingForData
				c.Message += orphanedRoleBindingsText(was.relation)
			}
		default:
			continue
		}
		d.addChange(c)
	}
}

// bindingCondition is one way to get an action. Two conditions with the same meaning have the same key in both policies.
type bindingCondition struct {
	key, text string
	// relation holds role bindings; it is empty for a step to other resources.
	relation string
	at       policy.Position
}

// bindingConditions returns the conditions of a binding, sorted by key.
func bindingConditions(b *policy.Binding, o policy.Options) []*bindingCondition {
	var all []*bindingCondition
	if b.RoleBinding {
		relation := o.RoleRelationOf(b.Action)
		all = append(all, &bindingCondition{key: "role binding in " + relation, text: "by a role binding", relation: relation, at: b.At})
	}
	for _, s := range b.Steps {
		all = append(all, &bindingCondition{
			key: s.Relation + "->" + s.Action, text: fmt.Sprintf("to users with %s on its %s", s.Action, s.Relation), at: s.At,
		})
	}
	slices.SortFunc(all, func(x, y *bindingCondition) int { return strings.Compare(x.key, y.key) })
	return all
}

func conditionTexts(conditions []*bindingCondition) []string {
	words := make([]string, len(conditions))
	for i, c := range conditions {
		words[i] = c.text
	}
	return words
}
