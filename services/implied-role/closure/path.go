package closure

import (
	"iter"
	"slices"
)

const nowhere = -1

// Path is the shortest path from one node to another, both included; of several the one
// that comes first in order. Nil if there is none, or the two are the same.
func (g *Graph[N]) Path(from, to N) []N {
	j, ok := g.index[to]
	if !ok || !g.Reaches(from, to) {
		return nil
	}
	return g.trace(g.tree(g.index[from]), j)
}

// Paths yields for all that n reaches, in order, the shortest path as [Graph.Path] would.
// It costs one walk over the graph.
func (g *Graph[N]) Paths(n N) iter.Seq2[N, []N] {
	return func(yield func(N, []N) bool) {
		i, ok := g.index[n]
		if !ok {
			return
		}
		tree := g.tree(i)
		for j := range g.reach[g.component[i]].all() {
			if j != i && !yield(g.nodes[j], g.trace(tree, j)) {
				return
			}
		}
	}
}

// tree says from where a breadth-first walk first came to each node. Neighbours are
// sorted, and so the walk comes to each by the first of its shortest paths.
func (g *Graph[N]) tree(from int32) []int32 {
	came := make([]int32, len(g.nodes))
	for i := range came {
		came[i] = nowhere
	}
	came[from] = from
	queue := []int32{from}
	for head := 0; head < len(queue); head++ {
		for _, w := range g.out.of(queue[head]) {
			if came[w] == nowhere {
				came[w] = queue[head]
				queue = append(queue, w)
			}
		}
	}
	return came
}

func (g *Graph[N]) trace(came []int32, to int32) []N {
	path := []N{g.nodes[to]}
	for i := to; came[i] != i; i = came[i] {
		path = append(path, g.nodes[came[i]])
	}
	slices.Reverse(path)
	return path
}

// Distances tells how many edges the shortest path from a node to one has: 0 from that
// itself, -1 if there is none.
func (g *Graph[N]) Distances(to N) func(N) int {
	end, ok := g.index[to]
	if !ok {
		return func(n N) int {
			if n == to {
				return 0
			}
			return nowhere
		}
	}
	s := &search[N]{graph: g, to: end}
	s.distances()
	return func(n N) int {
		if i, ok := g.index[n]; ok {
			return int(s.distance[i])
		}
		return nowhere
	}
}

// budget bounds the steps of one search for paths.
const budget = 200_000

// AllPaths lists up to limit paths from one node to another that visit no node twice,
// shortest first, then in order. More means that there are, or may be, others.
func (g *Graph[N]) AllPaths(from, to N, limit int) (paths [][]N, more bool) {
	if !g.Reaches(from, to) || limit <= 0 {
		return nil, limit <= 0 && g.Reaches(from, to)
	}
	s := &search[N]{graph: g, to: g.index[to], limit: limit + 1, left: budget, on: make([]bool, len(g.nodes))}
	s.distances()
	start := g.index[from]
	// Each round finds the paths of one length, until none was cut short by it.
	for length := s.distance[start]; length != nowhere; length = s.next {
		s.next = nowhere
		s.visit(start, length)
		if len(s.found) >= s.limit || s.left <= 0 {
			break
		}
	}
	if len(s.found) > limit {
		return s.found[:limit], true
	}
	return s.found, s.left <= 0
}

// search looks for the paths of one length at a time.
type search[N comparable] struct {
	graph       *Graph[N]
	to          int32
	limit, left int
	// distance of each node to the end.
	distance []int32
	// on marks the nodes of path.
	on   []bool
	path []int32
	// next is the smallest length that would have gone on somewhere.
	next  int32
	found [][]N
}

func (s *search[N]) distances() {
	s.distance = make([]int32, len(s.graph.nodes))
	for i := range s.distance {
		s.distance[i] = nowhere
	}
	s.distance[s.to] = 0
	queue := []int32{s.to}
	for head := 0; head < len(queue); head++ {
		for _, w := range s.graph.in.of(queue[head]) {
			if s.distance[w] == nowhere {
				s.distance[w] = s.distance[queue[head]] + 1
				queue = append(queue, w)
			}
		}
	}
}

// visit goes on to the end in exactly so many steps.
func (s *search[N]) visit(v, steps int32) {
	s.left--
	s.path, s.on[v] = append(s.path, v), true
	defer func() { s.path, s.on[v] = s.path[:len(s.path)-1], false }()
	if v == s.to {
		if steps == 0 {
			s.take()
		}
		return
	}
	for _, w := range s.graph.out.of(v) {
		if s.left <= 0 || len(s.found) >= s.limit {
			return
		}
		if s.on[w] || s.distance[w] == nowhere {
			continue
		}
		if over := s.distance[w] + 1 - steps; over > 0 {
			// The whole path would have this many steps.
			s.shortest(int32(len(s.path)) + s.distance[w])
			continue
		}
		s.visit(w, steps-1)
	}
}

func (s *search[N]) shortest(length int32) {
	if s.next == nowhere || length < s.next {
		s.next = length
	}
}

func (s *search[N]) take() {
	path := make([]N, len(s.path))
	for i, v := range s.path {
		path[i] = s.graph.nodes[v]
	}
	s.found = append(s.found, path)
}
