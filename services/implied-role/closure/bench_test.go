package closure

import (
	"cmp"
	"math/rand/v2"
	"testing"
)

// diamondChain returns n diamonds on top of each other, with 2^n paths.
func diamondChain(n int) []Edge[int] {
	var edges []Edge[int]
	side := 2*n + 1 // The left side of a diamond has a number between its ends, the right side a number after all others.
	for i := range n {
		edges = append(edges,
			Edge[int]{2 * i, 2*i + 1}, Edge[int]{2*i + 1, 2*i + 2},
			Edge[int]{2 * i, side + i}, Edge[int]{side + i, 2*i + 2})
	}
	return edges
}

func ring(n int) []Edge[int] {
	edges := make([]Edge[int], n)
	for i := range edges {
		edges[i] = Edge[int]{i, (i + 1) % n}
	}
	return edges
}

// randomEdges returns random edges. Without cycles, they lead only to larger numbers.
func randomEdges(nodes, edges int, cycles bool) []Edge[int] {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]Edge[int], 0, edges)
	for len(list) < edges {
		e := Edge[int]{r.IntN(nodes), r.IntN(nodes)}
		if e.From < e.To || cycles {
			list = append(list, e)
		}
	}
	return list
}

func BenchmarkClosure(b *testing.B) {
	for _, c := range []struct {
		name  string
		edges []Edge[int]
	}{
		{"1000 nodes, 1000 edges, no cycles", randomEdges(1000, 1000, false)},
		{"1000 nodes, 1000 edges", randomEdges(1000, 1000, true)},
		{"5000 nodes, 20000 edges, no cycles", randomEdges(5000, 20000, false)},
		{"5000 nodes, 20000 edges", randomEdges(5000, 20000, true)},
		{"80 diamonds", diamondChain(80)},
		{"cycle of 1000", ring(1000)},
	} {
		b.Run(c.name+"/components and bits", func(b *testing.B) {
			for b.Loop() {
				New(c.edges, cmp.Compare)
			}
		})
		b.Run(c.name+"/naive walk", func(b *testing.B) {
			for b.Loop() {
				naiveClosure(c.edges)
			}
		})
	}
}
