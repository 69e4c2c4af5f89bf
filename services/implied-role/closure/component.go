package closure

import "slices"

// numberedEdge is an edge between numbered nodes.
type numberedEdge struct{ from, to int32 }

// adjacency holds the neighbours of all nodes in one slice. The neighbours of node i begin at start[i] and end before
// start[i+1].
type adjacency struct{ start, neighbours []int32 }

func newAdjacency(n int, pairs []numberedEdge, ends func(numberedEdge) (int32, int32)) adjacency {
	a := adjacency{start: make([]int32, n+1), neighbours: make([]int32, len(pairs))}
	for _, p := range pairs {
		from, _ := ends(p)
		a.start[from+1]++
	}
	for i := range n {
		a.start[i+1] += a.start[i]
	}
	next := slices.Clone(a.start)
	for _, p := range pairs {
		from, to := ends(p)
		a.neighbours[next[from]] = to
		next[from]++
	}
	return a.sortNeighbours()
}

// sortNeighbours sorts the neighbours of each node and removes duplicates.
func (a adjacency) sortNeighbours() adjacency {
	kept, end := a.neighbours[:0], int32(0)
	for i := range len(a.start) - 1 {
		of := a.neighbours[end:a.start[i+1]]
		end = a.start[i+1]
		slices.Sort(of)
		a.start[i] = int32(len(kept))
		kept = append(kept, slices.Compact(of)...)
	}
	a.start[len(a.start)-1] = int32(len(kept))
	a.neighbours = kept
	return a
}

func (a adjacency) neighboursOf(i int32) []int32 { return a.neighbours[a.start[i]:a.start[i+1]] }

// tarjan finds strongly connected components with the algorithm of R. Tarjan (1972). It keeps its own stack, because a
// long chain of rules would exhaust recursion.
type tarjan struct {
	out adjacency
	// order holds the number of the first visit of each node, from 1. low holds the earliest visit found reachable so
	// far.
	order, low []int32
	stack      []int32
	component  []int32
	members    [][]int32
	visits     int32
}

// walkFrame is a node of the walk. Its neighbours before next have been visited.
type walkFrame struct{ node, next int32 }

const open = -1

// numberComponents numbers the components so that every edge leads to an equal or smaller number.
func numberComponents(out adjacency) (component []int32, members [][]int32) {
	n := len(out.start) - 1
	t := &tarjan{out: out, order: make([]int32, n), low: make([]int32, n), component: make([]int32, n)}
	for i := range t.component {
		t.component[i] = open
	}
	for root := range int32(n) {
		if t.order[root] == 0 {
			t.walkFrom(root)
		}
	}
	return t.component, t.members
}

func (t *tarjan) enterNode(v int32) walkFrame {
	t.visits++
	t.order[v], t.low[v] = t.visits, t.visits
	t.stack = append(t.stack, v)
	return walkFrame{node: v}
}

func (t *tarjan) walkFrom(root int32) {
	frames := []walkFrame{t.enterNode(root)}
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		v := f.node
		if next := t.out.neighboursOf(v); int(f.next) < len(next) {
			w := next[f.next]
			f.next++
			switch {
			case t.order[w] == 0:
				frames = append(frames, t.enterNode(w))
			case t.component[w] == open:
				t.low[v] = min(t.low[v], t.order[w])
			}
			continue
		}
		frames = frames[:len(frames)-1]
		if len(frames) > 0 {
			parent := frames[len(frames)-1].node
			t.low[parent] = min(t.low[parent], t.low[v])
		}
		if t.low[v] == t.order[v] {
			t.popComponent(v)
		}
	}
}

// popComponent removes the component of v from the stack: v and everything above it.
func (t *tarjan) popComponent(v int32) {
	i := len(t.stack) - 1
	for t.stack[i] != v {
		i--
	}
	members := slices.Clone(t.stack[i:])
	t.stack = t.stack[:i]
	for _, w := range members {
		t.component[w] = int32(len(t.members))
	}
	t.members = append(t.members, members)
}
