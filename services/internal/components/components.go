// Package components finds the strongly connected components of a directed graph: the sets of nodes that all reach each
// other.
package components

import "slices"

// StronglyConnectedFinder finds components with the algorithm of R. Tarjan (1972). It keeps its own stack, because a
// long path would exhaust recursion.
type StronglyConnectedFinder[N comparable] struct {
	successors func(N) []N
	// position holds the place on the path of each visited node, from 1. It is done for a node of a complete component.
	position map[N]int
	path     []N
}

const done = 0

// nodeVisit is a node on the way from the start, with the successors that are left to visit.
type nodeVisit[N comparable] struct {
	left []N
	// own is the position of the node, low the earliest position found reachable so far.
	own, low int
}

// NewStronglyConnectedFinder returns a finder for the graph with these successors of a node.
func NewStronglyConnectedFinder[N comparable](successors func(N) []N) *StronglyConnectedFinder[N] {
	return &StronglyConnectedFinder[N]{successors: successors, position: map[N]int{}}
}

// CollectNewFrom returns the components that a node reaches, including its own, and that were not returned before. Each
// component comes after those that it leads to.
func (f *StronglyConnectedFinder[N]) CollectNewFrom(start N) (found [][]N) {
	if _, visited := f.position[start]; visited {
		return nil
	}
	for way := []nodeVisit[N]{f.enterNode(start)}; len(way) > 0; {
		at := &way[len(way)-1]
		if len(at.left) > 0 {
			to := at.left[0]
			at.left = at.left[1:]
			if position, visited := f.position[to]; !visited {
				way = append(way, f.enterNode(to))
			} else if position != done {
				at.low = min(at.low, position)
			}
			continue
		}
		if at.low == at.own {
			found = append(found, f.closeComponent(at.own))
		} else {
			before := &way[len(way)-2]
			before.low = min(before.low, at.low)
		}
		way = way[:len(way)-1]
	}
	return found
}

func (f *StronglyConnectedFinder[N]) enterNode(n N) nodeVisit[N] {
	f.path = append(f.path, n)
	own := len(f.path)
	f.position[n] = own
	return nodeVisit[N]{left: f.successors(n), own: own, low: own}
}

// closeComponent removes the nodes from a position on from the path, and returns them.
func (f *StronglyConnectedFinder[N]) closeComponent(from int) []N {
	component := slices.Clone(f.path[from-1:])
	f.path = f.path[:from-1]
	for _, n := range component {
		f.position[n] = done
	}
	return component
}
