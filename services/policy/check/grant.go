package check

import (
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// waitingGrant is an action on a type that a subject can have once it can have the action of a step on a target.
type waitingGrant struct {
	binding *draftBinding
	action  *draftAction
}

// reportUngranted reports the actions that no subject can ever have, whatever roles are bound. It starts with the actions
// that role bindings give. From there, grants spread backwards along relations, to the bindings that wait for them.
func (c *checker) reportUngranted() {
	if !c.registerWaitingGrants() {
		return
	}
	var queue []*draftType
	enqueue := func(t *draftType) {
		if !t.queued {
			t.queued = true
			queue = append(queue, t)
		}
	}
	for _, t := range c.allTypes {
		if t.granted != nil {
			enqueue(t)
		}
	}
	for len(queue) > 0 {
		t := queue[len(queue)-1]
		queue, t.queued = queue[:len(queue)-1], false
		for _, r := range t.readers {
			r.grantWaitingActions(t.granted, enqueue)
		}
		for _, u := range t.memberOf {
			if len(u.readers) == 0 || !u.any.unionWith(t.granted) {
				continue
			}
			for _, r := range u.readers {
				r.grantWaitingActions(u.any, enqueue)
			}
		}
	}
	c.reportUngrantedBindings()
}

// registerWaitingGrants registers the bindings without a role binding at their relations, and reports whether any
// exists.
func (c *checker) registerWaitingGrants() bool {
	found := false
	for _, b := range c.bindings {
		if b.RoleBinding || b.action == nil {
			continue
		}
		for _, t := range b.members {
			found = true
			for _, s := range b.steps {
				if r := t.relationNamed(s.Relation); r != nil && s.action != nil {
					c.registerRelationAtTargets(r)
					r.waiting = append(r.waiting, waitingGrant{binding: b, action: s.action})
				}
			}
		}
	}
	return found
}

// registerRelationAtTargets registers a relation at its targets.
func (c *checker) registerRelationAtTargets(r *draftRelation) {
	if len(r.waiting) > 0 {
		return
	}
	for _, target := range r.refs {
		if target.t != nil {
			target.t.readers = append(target.t.readers, r)
			continue
		}
		if target.u.any == nil {
			target.u.any = newBitSet(len(c.allActions))
		}
		target.u.readers = append(target.u.readers, r)
	}
}

// grantWaitingActions gives the actions that wait at the relation for one of these actions.
func (r *draftRelation) grantWaitingActions(actions bitSet, changed func(*draftType)) {
	r.waiting = slices.DeleteFunc(r.waiting, func(w waitingGrant) bool {
		if !actions.has(w.action.number) {
			return false
		}
		if !r.of.granted.has(w.binding.action.number) {
			r.of.granted.add(w.binding.action.number)
			changed(r.of)
		}
		return true
	})
}

func (c *checker) reportUngrantedBindings() {
	for _, b := range c.bindings {
		if b.RoleBinding || b.action == nil {
			continue
		}
		var names []string
		for _, t := range b.members {
			if !t.granted.has(b.action.number) {
				names = append(names, quoteName(t.Name))
				c.ungranted = append(c.ungranted, policy.ActionOnType{Type: t.Type, Binding: b.Binding})
			}
		}
		if len(names) > 0 {
			c.findings.Add(b.Source.PlaceAt(b.At), policy.CodeNeverGranted, "nobody can ever have action "+quoteName(b.Action)+" on "+joinFirstWords(names),
				"add `roleBinding: {}` here, or where the relations lead")
		}
	}
}
