package closure

import (
	"iter"
	"slices"
)

const nowhere = -1

// ShortestPath returns the shortest path between two nodes, including both. If several are equally short, it returns the first
// in order. It returns nil if no path exists, or if the two nodes are equal.
func (g *Graph[N]) ShortestPath(from, to N) []N {
	j, ok := g.index[to]
	if !ok || !g.CanReach(from, to) {
		return nil
	}
	return g.tracePath(g.breadthFirstTree(g.index[from]), j)
}

// Paths yields each node that n reaches, in order, with its shortest path as [Graph.ShortestPath] returns it. All paths
// together cost one walk over the graph.
func (g *Graph[N]) Paths(n N) iter.Seq2[N, []N] {
	return func(yield func(N, []N) bool) {
		i, ok := g.index[n]
		if !ok {
			return
		}
		tree := g.breadthFirstTree(i)
		for j := range g.reach[g.component[i]].All() {
			if int32(j) != i && !yield(g.nodes[j], g.tracePath(tree, int32(j))) {
				return
			}
		}
	}
}

// breadthFirstTree returns the predecessor of each node in a breadth-first walk. Neighbours are sorted, so the walk reaches each
// node by the first of its shortest paths.
func (g *Graph[N]) breadthFirstTree(from int32) []int32 {
	came := make([]int32, len(g.nodes))
	for i := range came {
		came[i] = nowhere
	}
	came[from] = from
	queue := []int32{from}
	for head := 0; head < len(queue); head++ {
		for _, w := range g.out.neighboursOf(queue[head]) {
			if came[w] == nowhere {
				came[w] = queue[head]
				queue = append(queue, w)
			}
		}
	}
	return came
}

func (g *Graph[N]) tracePath(came []int32, to int32) []N {
	path := []N{g.nodes[to]}
	for i := to; came[i] != i; i = came[i] {
		path = append(path, g.nodes[came[i]])
	}
	slices.Reverse(path)
	return path
}

// DistancesTo returns a function that counts the edges of the shortest path from a node to the given one. It returns 0
// for the node itself and -1 if no path exists.
func (g *Graph[N]) DistancesTo(to N) func(N) int {
	end, ok := g.index[to]
	if !ok {
		return func(n N) int {
			if n == to {
				return 0
			}
			return nowhere
		}
	}
	s := &pathSearch[N]{graph: g, to: end}
	s.computeDistances()
	return func(n N) int {
		if i, ok := g.index[n]; ok {
			return int(s.distance[i])
		}
		return nowhere
	}
}

// budget bounds the steps of one search for paths.
const budget = 200_000

// SimplePaths lists up to limit paths that visit no node twice, shortest first, then in order. If more is true, other
// paths exist or may exist.
func (g *Graph[N]) SimplePaths(from, to N, limit int) (paths [][]N, more bool) {
	if !g.CanReach(from, to) || limit <= 0 {
		return nil, limit <= 0 && g.CanReach(from, to)
	}
	s := &pathSearch[N]{graph: g, to: g.index[to], limit: limit + 1, left: budget, on: make([]bool, len(g.nodes))}
	s.computeDistances()
	start := g.index[from]
	// Each round finds the paths of one length. The search ends when no round was cut short by its length.
	for length := s.distance[start]; length != nowhere; length = s.next {
		s.next = nowhere
		s.extendPath(start, length)
		if len(s.found) >= s.limit || s.left <= 0 {
			break
		}
	}
	if len(s.found) > limit {
		return s.found[:limit], true
	}
	return s.found, s.left <= 0
}

// pathSearch finds paths of one length at a time.
type pathSearch[N comparable] struct {
	graph       *Graph[N]
	to          int32
	limit, left int
	// distance holds the number of edges from each node to the end.
	distance []int32
	// on marks the nodes of path.
	on   []bool
	path []int32
	// next is the smallest length at which a path that was cut short could continue.
	next  int32
	found [][]N
}

func (s *pathSearch[N]) computeDistances() {
	s.distance = make([]int32, len(s.graph.nodes))
	for i := range s.distance {
		s.distance[i] = nowhere
	}
	s.distance[s.to] = 0
	queue := []int32{s.to}
	for head := 0; head < len(queue); head++ {
		for _, w := range s.graph.in.neighboursOf(queue[head]) {
			if s.distance[w] == nowhere {
				s.distance[w] = s.distance[queue[head]] + 1
				queue = append(queue, w)
			}
		}
	}
}

// extendPath extends the path from v to the end with exactly the given number of steps.
func (s *pathSearch[N]) extendPath(v, remaining int32) {
	s.left--
	s.path, s.on[v] = append(s.path, v), true
	defer func() { s.path, s.on[v] = s.path[:len(s.path)-1], false }()
	if v == s.to {
		if remaining == 0 {
			s.recordFoundPath()
		}
		return
	}
	for _, w := range s.graph.out.neighboursOf(v) {
		if s.left <= 0 || len(s.found) >= s.limit {
			return
		}
		if s.on[w] || s.distance[w] == nowhere {
			continue
		}
		if over := s.distance[w] + 1 - remaining; over > 0 {
			// This is the smallest length of a whole path through w.
			s.lowerNextLength(int32(len(s.path)) + s.distance[w])
			continue
		}
		s.extendPath(w, remaining-1)
	}
}

func (s *pathSearch[N]) lowerNextLength(length int32) {
	if s.next == nowhere || length < s.next {
		s.next = length
	}
}

func (s *pathSearch[N]) recordFoundPath() {
	path := make([]N, len(s.path))
	for i, v := range s.path {
		path[i] = s.graph.nodes[v]
	}
	s.found = append(s.found, path)
}
