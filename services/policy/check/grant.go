package check

import (
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// waiting is an action on a type that a subject can have once it can have the action of a step on a target.
type waiting struct {
	binding *binding
	action  *action
}

// reportUngranted reports the actions that no subject can ever have, whatever roles are bound. It starts with the actions
// that role bindings give. From there, grants spread backwards along relations, to the bindings that wait for them.
func (c *checker) reportUngranted() {
	if !c.registerWaiting() {
		return
	}
	var queue []*typ
	enqueue := func(t *typ) {
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
			r.grant(t.granted, enqueue)
		}
		for _, u := range t.memberOf {
			if len(u.readers) == 0 || !u.any.or(t.granted) {
				continue
			}
			for _, r := range u.readers {
				r.grant(u.any, enqueue)
			}
		}
	}
	c.noteUngranted()
}

// registerWaiting registers the bindings without a role binding at their relations, and reports whether any exists.
func (c *checker) registerWaiting() bool {
	found := false
	for _, b := range c.bindings {
		if b.RoleBinding || b.action == nil {
			continue
		}
		for _, t := range b.members {
			found = true
			for _, s := range b.steps {
				if r := t.relation(s.Relation); r != nil && s.action != nil {
					c.read(r)
					r.waiting = append(r.waiting, waiting{binding: b, action: s.action})
				}
			}
		}
	}
	return found
}

// read registers a relation at its targets.
func (c *checker) read(r *relation) {
	if len(r.waiting) > 0 {
		return
	}
	for _, target := range r.refs {
		if target.t != nil {
			target.t.readers = append(target.t.readers, r)
			continue
		}
		if target.u.any == nil {
			target.u.any = newBits(len(c.allActions))
		}
		target.u.readers = append(target.u.readers, r)
	}
}

// grant gives the actions that wait at the relation for one of these actions.
func (r *relation) grant(actions bits, changed func(*typ)) {
	r.waiting = slices.DeleteFunc(r.waiting, func(w waiting) bool {
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

func (c *checker) noteUngranted() {
	for _, b := range c.bindings {
		if b.RoleBinding || b.action == nil {
			continue
		}
		var names []string
		for _, t := range b.members {
			if !t.granted.has(b.action.number) {
				names = append(names, quote(t.Name))
				c.ungranted = append(c.ungranted, policy.Grant{Type: t.Type, Binding: b.Binding})
			}
		}
		if len(names) > 0 {
			c.findings.Add(b.Source.At(b.At), policy.CodeNeverGranted, "nobody can ever have action "+quote(b.Action)+" on "+firstWords(names),
				"add `roleBinding: {}` here, or where the relations lead")
		}
	}
}
