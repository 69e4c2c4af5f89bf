package closure

import (
	"slices"

	"github.com/entail-dev/entail/services/internal/components"
)

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

// numberComponents numbers the components so that every edge leads to an equal or smaller number.
func numberComponents(out adjacency) (component []int32, members [][]int32) {
	finder := components.NewStronglyConnectedFinder(out.neighboursOf)
	component = make([]int32, len(out.start)-1)
	for root := range int32(len(component)) {
		for _, nodes := range finder.CollectNewFrom(root) {
			for _, node := range nodes {
				component[node] = int32(len(members))
			}
			members = append(members, nodes)
		}
	}
	return component, members
}
