package check

import (
	"fmt"
	"slices"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// binding is an action binding under construction.
type binding struct {
	*policy.Binding
	// action is nil if no document declares it.
	action *action
	// members holds the types that the binding applies to.
	members []*typ
	steps   []step
}

// step is a condition on another resource, with its action resolved.
type step struct {
	policy.Step
	action *action
}

// expandBindings adds every binding to its types. It stops and returns false if there are more than maxBound pairs.
func (c *checker) expandBindings() bool {
	for _, d := range c.documents {
		for _, written := range d.Bindings {
			c.bindings = append(c.bindings, c.binding(d.Source, written))
		}
	}
	byAction := make([][]*binding, len(c.allActions))
	bound := 0
	for _, b := range c.bindings {
		if b.action != nil {
			byAction[b.action.number] = append(byAction[b.action.number], b)
		}
		if bound += len(b.members); bound > maxBound {
			return false
		}
	}
	// The bindings of each type become sorted because actions are sorted.
	for _, bindings := range byAction {
		for _, b := range bindings {
			c.bind(b)
		}
	}
	return true
}

func (c *checker) binding(source *policy.Source, written syntax.Binding) *binding {
	b := &binding{Binding: &policy.Binding{Action: written.Action.Text, On: written.Type.Text, Source: source, At: written.At}}
	if c.requireName(source, written.Action, "actionName", written.At) {
		b.action = c.action(source, written.Action)
	}
	if c.requireName(source, written.Type, "typeName", written.At) {
		switch t, u := c.types[b.On], c.unions[b.On]; {
		case t != nil:
			b.members = []*typ{t}
		case u != nil:
			u.used = true
			b.members = u.members
		default:
			c.reportAbsent(source.At(written.Type.At), policy.CodeUnknownType, "type "+quote(b.On)+" is not declared",
				"declare a resource type or union of that name, or correct the name")
		}
	}
	c.conditions(b, written)
	return b
}

// action returns a declared action, or nil.
func (c *checker) action(source *policy.Source, name syntax.Name) *action {
	a := c.actions[name.Text]
	if a == nil {
		c.reportAbsent(source.At(name.At), policy.CodeUnknownAction, "action "+quote(name.Text)+" is not declared", "declare it under actions, or correct the name")
		return nil
	}
	a.used = true
	return a
}

func (c *checker) conditions(b *binding, written syntax.Binding) {
	if len(written.Conditions) == 0 {
		c.reportAbsent(b.Source.At(written.At), policy.CodeNoConditions, "the binding of "+quote(b.Action)+" to "+quote(b.On)+" has no conditions",
			"add `roleBinding: {}` or a relationshipAction: without one nobody is allowed")
	}
	var role policy.Position
	for _, condition := range written.Conditions {
		action := condition.RelationshipAction
		// The presence of a key counts; its value may be empty.
		switch place := b.Source.At(condition.At); {
		case condition.RoleBinding && action != nil:
			c.findings.Add(place, policy.CodeCondition, "the condition has both roleBinding and relationshipAction",
				"write a condition for each of them: either is enough")
		case action != nil:
			c.addStep(b, action)
		case !condition.RoleBinding:
			c.reportAbsent(place, policy.CodeCondition, "the condition has neither roleBinding nor relationshipAction",
				"write `roleBinding: {}` or a relationshipAction, or remove the condition")
		case b.RoleBinding:
			c.findings.Add(place, policy.CodeDupCondition, "the binding has roleBinding twice", "keep it once").
				Also(b.Source.At(role), "the first")
		default:
			b.RoleBinding, role = true, condition.At
		}
	}
	slices.SortStableFunc(b.steps, func(x, y step) int { return x.Compare(y.Step) })
	for i, s := range b.steps {
		b.Steps = append(b.Steps, s.Step)
		if i > 0 && s.Compare(b.steps[i-1].Step) == 0 {
			c.findings.Add(b.Source.At(s.At), policy.CodeDupCondition,
				"the binding has the condition "+quote(s.Action)+" through "+quote(s.Relation)+" twice", "keep it once").
				Also(b.Source.At(b.steps[i-1].At), "the first")
		}
	}
}

func (c *checker) addStep(b *binding, written *syntax.RelationshipAction) {
	hasRelation := c.requireName(b.Source, written.Relation, "relation", written.At)
	if !c.requireName(b.Source, written.Action, "actionName", written.At) || !hasRelation {
		return
	}
	b.steps = append(b.steps, step{
		Step:   policy.Step{Relation: written.Relation.Text, Action: written.Action.Text, At: written.At},
		action: c.action(b.Source, written.Action),
	})
}

// bind adds a binding to each of its types. It reports a type that already has a binding for the action.
func (c *checker) bind(b *binding) {
	others := map[*policy.Binding][]string{}
	for _, t := range b.members {
		if t.bound == nil {
			t.bound, t.granted = newBits(len(c.allActions)), newBits(len(c.allActions))
		}
		if t.bound.has(b.action.number) {
			if other := t.Binding(b.Action); other != nil {
				others[other] = append(others[other], quote(t.Name))
			}
			continue
		}
		t.bound.add(b.action.number)
		if b.RoleBinding {
			t.granted.add(b.action.number)
		}
		t.Bindings = append(t.Bindings, b.Binding)
	}
	for other, names := range others {
		c.findings.Add(b.Source.At(b.At), policy.CodeDupBinding,
			fmt.Sprintf("action %s is bound to %s twice: here on %s, and on %s", quote(b.Action), firstWords(names), quote(b.On), quote(other.On)),
			"keep one binding, with the conditions of both").
			Also(other.Source.At(other.At), "the first")
	}
}
