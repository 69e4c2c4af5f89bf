package graph

import (
	"slices"
	"strings"
)

// mostInFull bounds the nodes of a graph with lists of actions.
const mostInFull = 30

// Simplify makes a graph readable. It merges the types that the filter collapses, removes nodes far from the focus, and
// counts actions if the graph is large. It may change g.
func (g *Graph) Simplify(f Filter) *Graph {
	if f.Collapse != nil {
		g = g.collapseOwners(f)
	}
	if f.Focus != "" {
		g = g.subgraphNear(f.Focus, max(f.Depth, 1))
	}
	if len(g.Nodes) > mostInFull {
		g.Brief = true
		g.addUnionNodes()
	}
	slices.SortFunc(g.Nodes, compareNodes)
	return g
}

func compareNodes(a, b *Node) int { return strings.Compare(a.uniqueID(), b.uniqueID()) }

// collapseOwners merges all types of each matching owner into one node, except for the owner of the focus.
func (g *Graph) collapseOwners(f Filter) *Graph {
	out, focused := &Graph{}, ""
	for _, n := range g.Nodes {
		if n.Name == f.Focus {
			focused = n.Owner
		}
	}
	owners, in := map[string]*Node{}, map[*Node]*Node{}
	for _, n := range g.Nodes {
		switch {
		case n.Owner == focused || !f.Collapse.MatchString(n.Owner):
			in[n], out.Nodes = n, append(out.Nodes, n)
			continue
		case owners[n.Owner] == nil:
			owners[n.Owner] = &Node{Name: n.Owner, Beside: true}
			out.Nodes = append(out.Nodes, owners[n.Owner])
		}
		in[n] = owners[n.Owner]
		in[n].Types++
		in[n].Beside = in[n].Beside && n.Beside
	}
	type relation struct {
		from *Node
		name string
	}
	edges := map[relation]*Edge{}
	for _, e := range g.Edges {
		of := relation{in[e.From], e.Relation}
		to := edges[of]
		if to == nil {
			to = &Edge{Relation: e.Relation, From: of.from}
			edges[of], out.Edges = to, append(out.Edges, to)
		}
		to.addCollapsedEdge(e, in)
	}
	out.Edges = slices.DeleteFunc(out.Edges, func(e *Edge) bool { return len(e.To) == 0 })
	return out
}

// addCollapsedEdge adds another edge, with its nodes mapped by in. Arrows inside of a collapsed node are left out.
func (e *Edge) addCollapsedEdge(o *Edge, in map[*Node]*Node) {
	for _, n := range o.To {
		if n = in[n]; n != e.From || n.Types == 0 {
			e.To = append(e.To, n)
		}
	}
	slices.SortFunc(e.To, compareNodes)
	e.Flows = append(e.Flows, o.Flows...)
	slices.SortFunc(e.Flows, compareFlows)
	e.To, e.Flows = slices.Compact(e.To), slices.Compact(e.Flows)
	if len(e.To) == len(o.To) {
		e.union = o.union
	}
}

// subgraphNear returns the nodes that are at most depth arrows away from a node, in either direction. Those at that distance
// are dashed.
func (g *Graph) subgraphNear(name string, depth int) *Graph {
	out, distance := &Graph{}, map[*Node]int{}
	for _, n := range g.Nodes {
		if n.Name == name {
			distance[n], out.Nodes = 0, append(out.Nodes, n)
		}
	}
	around := map[*Node][]*Node{}
	for _, e := range g.Edges {
		for _, to := range e.To {
			around[e.From], around[to] = append(around[e.From], to), append(around[to], e.From)
		}
	}
	for i := 0; i < len(out.Nodes); i++ {
		n := out.Nodes[i]
		for _, next := range around[n] {
			if _, known := distance[next]; !known && distance[n] < depth {
				distance[next], out.Nodes = distance[n]+1, append(out.Nodes, next)
			}
		}
		n.Beside = distance[n] == depth
	}
	for _, e := range g.Edges {
		to := slices.DeleteFunc(slices.Clone(e.To), func(n *Node) bool {
			from, known := distance[e.From]
			other, too := distance[n]
			return !known || !too || min(from, other) == depth
		})
		if len(to) < len(e.To) {
			e = &Edge{Relation: e.Relation, From: e.From, To: to, Flows: e.Flows}
		}
		if len(to) > 0 {
			out.Edges = append(out.Edges, e)
		}
	}
	return out
}

// addUnionNodes adds a node for each union to which several relations lead, and redirects their edges to it.
func (g *Graph) addUnionNodes() {
	edges, unions := map[string][]*Edge{}, map[string]*Node{}
	for _, e := range g.Edges {
		if e.union != "" && len(e.To) > 1 {
			edges[e.union] = append(edges[e.union], e)
		}
	}
	for _, e := range slices.Clone(g.Edges) {
		if len(edges[e.union]) < 2 {
			continue
		}
		u := unions[e.union]
		if u == nil {
			u = &Node{Name: e.union, Union: true}
			unions[e.union], g.Nodes = u, append(g.Nodes, u)
			g.Edges = append(g.Edges, &Edge{From: u, To: e.To})
		}
		e.To = []*Node{u}
	}
}
