package closure

import (
	"iter"
	"slices"

	"github.com/entail-dev/entail/services/internal/bitset"
)

// Edge leads from one node to another.
type Edge[N comparable] struct{ From, To N }

// Graph is a directed graph with its closure. It is immutable and safe for concurrent use.
type Graph[N comparable] struct {
	nodes []N // sorted
	index map[N]int32
	// out and in hold the sorted neighbours of each node.
	out, in adjacency
	// component holds the component of each node. A component reaches only components with smaller numbers.
	component []int32
	members   [][]int32
	// reach holds the nodes that each component reaches, including its own if it has several. Nil means none.
	reach []bitset.Set
}

// New returns the graph of the edges, which may contain duplicates. Methods return nodes in the order of compare. An
// edge from a node to itself is left out, but its node is kept.
func New[N comparable](edges []Edge[N], compare func(a, b N) int) *Graph[N] {
	g := &Graph[N]{index: make(map[N]int32, len(edges))}
	pairs := make([]numberedEdge, len(edges))
	for i, e := range edges {
		pairs[i] = numberedEdge{g.ensureNodeNumber(e.From), g.ensureNodeNumber(e.To)}
	}
	g.sortNodes(pairs, compare)
	pairs = slices.DeleteFunc(pairs, func(p numberedEdge) bool { return p.from == p.to })
	g.out = newAdjacency(len(g.nodes), pairs, func(p numberedEdge) (int32, int32) { return p.from, p.to })
	g.in = newAdjacency(len(g.nodes), pairs, func(p numberedEdge) (int32, int32) { return p.to, p.from })
	g.component, g.members = numberComponents(g.out)
	g.computeClosure()
	return g
}

func (g *Graph[N]) ensureNodeNumber(n N) int32 {
	i, ok := g.index[n]
	if !ok {
		i = int32(len(g.nodes))
		g.index[n] = i
		g.nodes = append(g.nodes, n)
	}
	return i
}

// sortNodes renumbers the nodes in the order of compare.
func (g *Graph[N]) sortNodes(pairs []numberedEdge, compare func(a, b N) int) {
	order := make([]int32, len(g.nodes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return compare(g.nodes[a], g.nodes[b]) })
	nodes, number := make([]N, len(order)), make([]int32, len(order))
	for now, was := range order {
		nodes[now], number[was] = g.nodes[was], int32(now)
		g.index[nodes[now]] = int32(now)
	}
	g.nodes = nodes
	for i, p := range pairs {
		pairs[i] = numberedEdge{number[p.from], number[p.to]}
	}
}

// computeClosure computes the nodes that each component reaches. Components come in an order in which all successors of a
// component are already done.
func (g *Graph[N]) computeClosure() {
	g.reach = make([]bitset.Set, len(g.members))
	for c, members := range g.members {
		var reach bitset.Set
		for _, v := range members {
			for _, w := range g.out.neighboursOf(v) {
				if reach == nil {
					reach = bitset.New(len(g.nodes))
				}
				reach.Add(int(w))
				if d := g.component[w]; int(d) != c {
					reach.AddAll(g.reach[d])
				}
			}
		}
		g.reach[c] = reach
	}
}

// Nodes lists all nodes in order.
func (g *Graph[N]) Nodes() []N { return g.nodes }

// CanReach reports whether a path leads from a to another node b. It returns false if a and b are equal.
func (g *Graph[N]) CanReach(a, b N) bool {
	i, known := g.index[a]
	j, ok := g.index[b]
	return known && ok && i != j && g.reach[g.component[i]].Has(int(j))
}

// ReachableFrom yields the nodes that n reaches, in order. It leaves out n, even if n is in a cycle.
func (g *Graph[N]) ReachableFrom(n N) iter.Seq[N] {
	return func(yield func(N) bool) {
		i, ok := g.index[n]
		if !ok {
			return
		}
		for j := range g.reach[g.component[i]].All() {
			if int32(j) != i && !yield(g.nodes[j]) {
				return
			}
		}
	}
}

// CountReachable returns the number of nodes that [Graph.ReachableFrom] yields for n.
func (g *Graph[N]) CountReachable(n N) int {
	i, ok := g.index[n]
	if !ok {
		return 0
	}
	c := g.component[i]
	return g.reach[c].Count() - min(len(g.members[c])-1, 1)
}

// NodesReaching yields the nodes that reach n, in order. It leaves out n.
func (g *Graph[N]) NodesReaching(n N) iter.Seq[N] {
	return func(yield func(N) bool) {
		i, ok := g.index[n]
		if !ok {
			return
		}
		for j := range g.nodes {
			if int32(j) != i && g.reach[g.component[j]].Has(int(i)) && !yield(g.nodes[j]) {
				return
			}
		}
	}
}

// Successors lists the nodes to which a single edge leads from n, in order.
func (g *Graph[N]) Successors(n N) []N {
	i, ok := g.index[n]
	if !ok {
		return nil
	}
	list := make([]N, 0, len(g.out.neighboursOf(i)))
	for _, j := range g.out.neighboursOf(i) {
		list = append(list, g.nodes[j])
	}
	return list
}

// IsCycleEdge reports whether an edge from a to b is part of a cycle. The edge must be in the graph.
func (g *Graph[N]) IsCycleEdge(a, b N) bool {
	i, known := g.index[a]
	j, ok := g.index[b]
	return known && ok && i != j && g.component[i] == g.component[j]
}

// Cycles lists the sets of two or more nodes that all reach each other. Each set is in order.
func (g *Graph[N]) Cycles() [][]N {
	var cycles [][]N
	for _, members := range g.members {
		if len(members) < 2 {
			continue
		}
		sorted := slices.Sorted(slices.Values(members))
		cycle := make([]N, len(sorted))
		for i, v := range sorted {
			cycle[i] = g.nodes[v]
		}
		cycles = append(cycles, cycle)
	}
	slices.SortFunc(cycles, func(a, b []N) int { return int(g.index[a[0]] - g.index[b[0]]) })
	return cycles
}

// UpstreamSumFunc returns a function that sums the weights of a node and of all nodes that reach it. It returns 0 for a
// node outside the graph.
func (g *Graph[N]) UpstreamSumFunc(weight func(N) int) func(N) int {
	sums := make([]int, len(g.nodes))
	for c, members := range g.members {
		total := 0
		for _, v := range members {
			total += weight(g.nodes[v])
		}
		if total == 0 {
			continue
		}
		for v := range g.reach[c].All() {
			sums[v] += total
		}
		if len(members) == 1 {
			sums[members[0]] += total
		}
	}
	return func(n N) int {
		if i, ok := g.index[n]; ok {
			return sums[i]
		}
		return 0
	}
}

// UpstreamOf lists the given nodes that are in the graph, and all nodes that reach one of them, in order.
func (g *Graph[N]) UpstreamOf(of iter.Seq[N]) []N {
	var queue []int32
	seen := bitset.New(len(g.nodes))
	visit := func(i int32) {
		if !seen.Has(int(i)) {
			seen.Add(int(i))
			queue = append(queue, i)
		}
	}
	for n := range of {
		if i, ok := g.index[n]; ok {
			visit(i)
		}
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, j := range g.in.neighboursOf(i) {
			visit(j)
		}
	}
	var list []N
	for i := range seen.All() {
		list = append(list, g.nodes[i])
	}
	return list
}
