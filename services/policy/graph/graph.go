package graph

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// Graph is what is drawn of a policy. Everything in it is sorted by name.
type Graph struct {
	Boxes  []*Box
	Arrows []*Arrow
}

// Box is a type.
type Box struct {
	Name, Owner string
	Actions     []Action
	// Beside says that the filter does not choose the type, but something that it is connected with.
	Beside bool
}

// Action is something that can be done to the resources of a type.
type Action struct {
	Name string
	// ByRole says that role bindings of the resource itself can give it.
	ByRole bool
}

// Arrow is a relation of a type to some of its targets.
type Arrow struct {
	Relation string
	From     *Box
	To       []*Box
	Flows    []Flow
}

// Flow allows, at the tail of an arrow, an action to who may take another at its head. Mostly it is the same one.
type Flow struct{ Tail, Head string }

// String is the action, or "tail <- head" if it changes on the way.
func (f Flow) String() string {
	if f.Tail == f.Head {
		return f.Tail
	}
	return f.Tail + " <- " + f.Head
}

// Of returns what a filter chooses of a policy.
func Of(p *policy.Policy, f Filter) *Graph {
	b := builder{filter: f, boxes: map[*policy.Type]*box{}}
	for _, t := range p.Types {
		if !t.Synthesised() {
			b.boxes[t] = b.box(t)
		}
	}
	g := &Graph{}
	for _, t := range p.Types {
		if b.boxes[t] == nil {
			continue
		}
		for _, r := range t.Relations {
			if a := b.arrow(t, r); a != nil {
				g.Arrows = append(g.Arrows, a)
			}
		}
	}
	for _, t := range p.Types {
		if box := b.boxes[t]; box != nil && (!box.Beside || box.connected) {
			box.list(t)
			g.Boxes = append(g.Boxes, &box.Box)
		}
	}
	return g
}

type builder struct {
	filter Filter
	boxes  map[*policy.Type]*box
}

// box is a box under construction.
type box struct {
	Box

	actions   map[string]bool
	connected bool
}

func (b *builder) box(t *policy.Type) *box {
	f := b.filter
	box := &box{Box: Box{Name: t.Name, Owner: t.Source.Owner}, actions: map[string]bool{}}
	for _, bound := range t.Bindings {
		if f.action(bound.Action) && f.owner(t.Source, bound.Source) {
			box.actions[bound.Action] = true
		}
	}
	wanted := f.typeName(t) && (len(box.actions) > 0 || f.Actions == nil && f.owner(t.Source))
	if !wanted {
		box.Beside = true
		clear(box.actions)
	}
	return box
}

// list makes the list of actions from those that were noted.
func (x *box) list(t *policy.Type) {
	for _, bound := range t.Bindings {
		if x.actions[bound.Action] {
			x.Actions = append(x.Actions, Action{Name: bound.Action, ByRole: bound.RoleBinding})
		}
	}
}

// arrow returns what the filter chooses of a relation, or nil.
func (b *builder) arrow(t *policy.Type, r *policy.Relation) *Arrow {
	from := b.boxes[t]
	a := &Arrow{Relation: r.Name, From: &from.Box, Flows: b.flows(t, r)}
	if len(a.Flows) == 0 && (b.filter.Actions != nil || !b.filter.owner(r.Source)) {
		return nil
	}
	for _, target := range r.Targets {
		to := b.boxes[target]
		if to == nil || !b.filter.typeName(t) && !b.filter.typeName(target) {
			continue
		}
		from.connected, to.connected = true, true
		a.To = append(a.To, &to.Box)
		for _, flow := range a.Flows {
			from.actions[flow.Tail], to.actions[flow.Head] = true, true
		}
	}
	if len(a.To) == 0 {
		return nil
	}
	return a
}

func (b *builder) flows(t *policy.Type, r *policy.Relation) []Flow {
	var flows []Flow
	for _, bound := range t.Bindings {
		if !b.filter.owner(r.Source, bound.Source) {
			continue
		}
		for _, s := range bound.Steps {
			if s.Relation == r.Name && b.filter.action(bound.Action, s.Action) {
				flows = append(flows, Flow{Tail: bound.Action, Head: s.Action})
			}
		}
	}
	slices.SortFunc(flows, func(x, y Flow) int { return strings.Compare(x.String(), y.String()) })
	return flows
}
