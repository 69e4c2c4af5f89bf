package check

import (
	"fmt"
	"slices"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// draftBinding is an action binding under construction.
type draftBinding struct {
	*policy.Binding
	// action is nil if no document declares it.
	action *draftAction
	// members holds the types that the binding applies to.
	members []*draftType
	steps   []resolvedStep
}

// resolvedStep is a condition on another resource, with its action resolved.
type resolvedStep struct {
	policy.RelationStep
	action *draftAction
}

// expandBindings adds every binding to its types. It stops and returns false if there are more than maxBound pairs.
func (c *checker) expandBindings() bool {
	for _, d := range c.documents {
		for _, written := range d.Bindings {
			c.bindings = append(c.bindings, c.newDraftBinding(d.Source, written))
		}
	}
	byAction := make([][]*draftBinding, len(c.allActions))
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
			c.bindToTypes(b)
		}
	}
	return true
}

func (c *checker) newDraftBinding(source *policy.DocumentSource, written syntax.Binding) *draftBinding {
	b := &draftBinding{Binding: &policy.Binding{Action: written.Action.Text, On: written.Type.Text, Source: source, At: written.At}}
	if c.requireName(source, written.Action, "actionName", written.At) {
		b.action = c.resolveAction(source, written.Action)
	}
	if c.requireName(source, written.Type, "typeName", written.At) {
		switch t, u := c.types[b.On], c.unions[b.On]; {
		case t != nil:
			b.members = []*draftType{t}
		case u != nil:
			u.used = true
			b.members = u.members
		default:
			c.reportAbsent(source.PlaceAt(written.Type.At), policy.CodeUnknownType, "type "+quoteName(b.On)+" is not declared",
				"declare a resource type or union of that name, or correct the name")
		}
	}
	c.addConditions(b, written)
	return b
}

// resolveAction returns a declared action, or nil.
func (c *checker) resolveAction(source *policy.DocumentSource, name syntax.Name) *draftAction {
	a := c.actions[name.Text]
	if a == nil {
		c.reportAbsent(source.PlaceAt(name.At), policy.CodeUnknownAction, "action "+quoteName(name.Text)+" is not declared",
			"declare it under actions, or correct the name")
		return nil
	}
	a.used = true
	return a
}

func (c *checker) addConditions(b *draftBinding, written syntax.Binding) {
	if len(written.Conditions) == 0 {
		c.reportAbsent(b.Source.PlaceAt(written.At), policy.CodeNoConditions, "the binding of "+quoteName(b.Action)+" to "+quoteName(b.On)+" has no conditions",
			"add `roleBinding: {}` or a relationshipAction: without one nobody is allowed")
	}
	var role policy.Position
	for _, condition := range written.Conditions {
		action := condition.RelationshipAction
		// The presence of a key counts; its value may be empty.
		switch place := b.Source.PlaceAt(condition.At); {
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
				AddRelated(b.Source.PlaceAt(role), "the first")
		default:
			b.RoleBinding, role = true, condition.At
		}
	}
	slices.SortStableFunc(b.steps, func(x, y resolvedStep) int { return x.Compare(y.RelationStep) })
	for i, s := range b.steps {
		b.Steps = append(b.Steps, s.RelationStep)
		if i > 0 && s.Compare(b.steps[i-1].RelationStep) == 0 {
			c.findings.Add(b.Source.PlaceAt(s.At), policy.CodeDupCondition,
				"the binding has the condition "+quoteName(s.Action)+" through "+quoteName(s.Relation)+" twice", "keep it once").
				AddRelated(b.Source.PlaceAt(b.steps[i-1].At), "the first")
		}
	}
}

func (c *checker) addStep(b *draftBinding, written *syntax.RelationshipAction) {
	hasRelation := c.requireName(b.Source, written.Relation, "relation", written.At)
	if !c.requireName(b.Source, written.Action, "actionName", written.At) || !hasRelation {
		return
	}
	b.steps = append(b.steps, resolvedStep{
		RelationStep: policy.RelationStep{Relation: written.Relation.Text, Action: written.Action.Text, At: written.At},
		action:       c.resolveAction(b.Source, written.Action),
	})
}

// bindToTypes adds a binding to each of its types. It reports a type that already has a binding for the action.
func (c *checker) bindToTypes(b *draftBinding) {
	others := map[*policy.Binding][]string{}
	for _, t := range b.members {
		if t.bound == nil {
			t.bound, t.granted = newBitSet(len(c.allActions)), newBitSet(len(c.allActions))
		}
		if t.bound.has(b.action.number) {
			if other := t.FindBinding(b.Action); other != nil {
				others[other] = append(others[other], quoteName(t.Name))
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
		c.findings.Add(b.Source.PlaceAt(b.At), policy.CodeDupBinding,
			fmt.Sprintf("action %s is bound to %s twice: here on %s, and on %s", quoteName(b.Action), joinFirstWords(names),
				quoteName(b.On), quoteName(other.On)),
			"keep one binding, with the conditions of both").
			AddRelated(other.Source.PlaceAt(other.At), "the first")
	}
}
