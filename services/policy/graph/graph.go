package graph

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// Graph is a drawable graph. [FromPolicy] returns one that is sorted by name.
type Graph struct {
	Nodes []*Node
	Edges []*Edge
	// Brief is true if there are too many nodes to list actions; actions are counted then.
	Brief bool
}

// Node is a type, an owner with several types, or a union.
type Node struct {
	Name, Owner string
	Actions     []Action
	// Beside is true if the filter selects only a neighbor of the type.
	Beside bool
	// Types counts the types of an owner's node; it is 0 for a type.
	Types int
	// Union is true for a union. The node has one edge, to its members.
	Union bool
}

// uniqueID returns a unique ID. Types and unions share no names, and no name of a type contains a space.
func (n *Node) uniqueID() string {
	if n.Types > 0 {
		return "owner " + n.Name
	}
	return n.Name
}

// Action is an action on the resources of a type.
type Action struct {
	Name string
	// ByRole is true if role bindings on the resource itself can give the action.
	ByRole bool
}

// Edge is a relation of a type to some of its targets. The edge from a union to its members has no name.
type Edge struct {
	Relation string
	From     *Node
	To       []*Node
	Flows    []ActionFlow

	// union is the union that the relation names, if all its members are in To.
	union string
}

// ActionFlow gives action Tail at the tail of an edge to subjects with action Head at its head. Both are usually the same.
type ActionFlow struct{ Tail, Head string }

// String returns the action, or "tail <- head" if the actions differ.
func (f ActionFlow) String() string {
	if f.Tail == f.Head {
		return f.Tail
	}
	return f.Tail + " <- " + f.Head
}

// FromPolicy returns the part of a policy that the filter selects.
func FromPolicy(p *policy.Policy, f Filter) *Graph {
	b := graphBuilder{policy: p, filter: f, nodes: map[*policy.Type]*nodeBuilder{}}
	for _, t := range p.Types {
		if !t.IsSynthesised() {
			b.nodes[t] = b.newNode(t)
		}
	}
	g := &Graph{}
	for _, t := range p.Types {
		if b.nodes[t] == nil {
			continue
		}
		for _, r := range t.Relations {
			if e := b.newEdge(t, r); e != nil {
				g.Edges = append(g.Edges, e)
			}
		}
	}
	for _, t := range p.Types {
		if n := b.nodes[t]; n != nil && (!n.Beside || n.connected) {
			n.buildActions(t)
			g.Nodes = append(g.Nodes, &n.Node)
		}
	}
	return g.Simplify(f)
}

type graphBuilder struct {
	policy *policy.Policy
	filter Filter
	nodes  map[*policy.Type]*nodeBuilder
}

// nodeBuilder is a node under construction.
type nodeBuilder struct {
	Node

	actions   map[string]bool
	connected bool
}

func (b *graphBuilder) newNode(t *policy.Type) *nodeBuilder {
	f := b.filter
	n := &nodeBuilder{Node: Node{Name: t.Name, Owner: t.Source.Owner}, actions: map[string]bool{}}
	for _, bound := range t.Bindings {
		if f.matchesAction(bound.Action) && f.matchesOwner(t.Source, bound.Source) {
			n.actions[bound.Action] = true
		}
	}
	wanted := f.matchesType(t) && (len(n.actions) > 0 || f.Actions == nil && f.matchesOwner(t.Source))
	if !wanted {
		n.Beside = true
		clear(n.actions)
	}
	return n
}

// buildActions sets the list of actions from the noted ones.
func (n *nodeBuilder) buildActions(t *policy.Type) {
	for _, bound := range t.Bindings {
		if n.actions[bound.Action] {
			n.Actions = append(n.Actions, Action{Name: bound.Action, ByRole: bound.RoleBinding})
		}
	}
}

// newEdge returns the selected part of a relation, or nil.
func (b *graphBuilder) newEdge(t *policy.Type, r *policy.Relation) *Edge {
	from := b.nodes[t]
	e := &Edge{Relation: r.Name, From: &from.Node, Flows: b.actionFlows(t, r)}
	if len(e.Flows) == 0 && (b.filter.Actions != nil || !b.filter.matchesOwner(r.Source)) {
		return nil
	}
	for _, target := range r.Targets {
		to := b.nodes[target]
		if to == nil || !b.filter.matchesType(t) && !b.filter.matchesType(target) {
			continue
		}
		from.connected, to.connected = true, true
		e.To = append(e.To, &to.Node)
		for _, flow := range e.Flows {
			from.actions[flow.Tail], to.actions[flow.Head] = true, true
		}
	}
	if len(e.To) == 0 {
		return nil
	}
	if of := r.References; len(of) == 1 && len(e.To) == len(r.Targets) && b.policy.FindUnion(of[0].Name) != nil {
		e.union = of[0].Name
	}
	return e
}

func (b *graphBuilder) actionFlows(t *policy.Type, r *policy.Relation) []ActionFlow {
	var flows []ActionFlow
	for _, bound := range t.Bindings {
		if !b.filter.matchesOwner(r.Source, bound.Source) {
			continue
		}
		for _, s := range bound.Steps {
			if s.Relation == r.Name && b.filter.matchesAction(bound.Action, s.Action) {
				flows = append(flows, ActionFlow{Tail: bound.Action, Head: s.Action})
			}
		}
	}
	slices.SortFunc(flows, compareFlows)
	return flows
}

func compareFlows(a, b ActionFlow) int { return strings.Compare(a.String(), b.String()) }
