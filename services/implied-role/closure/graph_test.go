package closure

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parse returns the graph of edges such as "a>b b>c".
func parse(text string) *Graph[string] {
	var edges []Edge[string]
	for pair := range strings.FieldsSeq(text) {
		from, to, _ := strings.Cut(pair, ">")
		edges = append(edges, Edge[string]{from, to})
	}
	return New(edges, cmp.Compare)
}

func joinEdges(nodes []string) string { return strings.Join(nodes, " ") }

func TestCanReachFollowsEveryPath(t *testing.T) {
	for name, c := range map[string]struct{ edges, from, want, to string }{
		"chain":                     {edges: "a>b b>c", from: "a", want: "b c"},
		"end of a chain":            {edges: "a>b b>c", from: "c", to: "a b"},
		"diamond":                   {edges: "a>c a>b c>d b>d", from: "a", want: "b c d"},
		"the same edge twice":       {edges: "a>b a>b", from: "a", want: "b"},
		"cycle of two":              {edges: "a>b b>a", from: "a", want: "b", to: "b"},
		"cycle with a tail":         {edges: "a>b b>c c>a c>d", from: "b", want: "a c d", to: "a c"},
		"what leads into a cycle":   {edges: "x>a a>b b>a", from: "x", want: "a b"},
		"two cycles in a row":       {edges: "a>b b>a b>c c>d d>c", from: "a", want: "b c d", to: "b"},
		"from a node to itself":     {edges: "a>a", from: "a"},
		"a node that is not there":  {edges: "a>b", from: "x"},
		"a graph that has no edges": {from: "a"},
	} {
		g := parse(c.edges)
		if got := joinEdges(slices.Collect(g.ReachableFrom(c.from))); got != c.want {
			t.Errorf("%s: %s reaches %q, want %q", name, c.from, got, c.want)
		}
		if got := joinEdges(slices.Collect(g.NodesReaching(c.from))); got != c.to {
			t.Errorf("%s: %s is reached by %q, want %q", name, c.from, got, c.to)
		}
	}
}

func TestCyclesListsMutuallyReachableSets(t *testing.T) {
	g := parse("d>c c>d a>b b>e e>a e>c x>x z>a")
	if got := fmt.Sprint(g.Cycles()); got != "[[a b e] [c d]]" {
		t.Errorf("cycles %s", got)
	}
	for edge, want := range map[string]bool{"a b": true, "e a": true, "e c": false, "c d": true, "z a": false, "x x": false, "z q": false} {
		from, to, _ := strings.Cut(edge, " ")
		if got := g.IsCycleEdge(from, to); got != want {
			t.Errorf("%s is part of a cycle: %v", edge, got)
		}
	}
}

func TestShortestPathReturnsFirstOfShortest(t *testing.T) {
	g := parse("a>z z>d a>b b>d d>e a>x x>y y>e q>q")
	for ends, want := range map[string]string{"a d": "a b d", "a e": "a b d e", "d e": "d e", "e a": "", "a a": "", "a none": ""} {
		from, to, _ := strings.Cut(ends, " ")
		if got := joinEdges(g.ShortestPath(from, to)); got != want {
			t.Errorf("path %s is %q, want %q", ends, got, want)
		}
	}
}

func TestSimplePathsAreShortestFirstUpToLimit(t *testing.T) {
	for name, c := range map[string]struct {
		edges string
		limit int
		want  string
		more  bool
	}{
		"of a diamond":             {edges: "a>c c>z a>b b>z", limit: 5, want: "a b z|a c z"},
		"of different lengths":     {edges: "a>z a>b b>z b>c c>z", limit: 5, want: "a z|a b z|a b c z"},
		"through a cycle":          {edges: "a>b b>a b>c c>b c>z a>c", limit: 5, want: "a c z|a b c z"},
		"around a cycle":           {edges: "a>b b>z z>a", limit: 5, want: "a b z"},
		"more than asked for":      {edges: "a>c c>z a>b b>z a>d d>z", limit: 2, want: "a b z|a c z", more: true},
		"just as many":             {edges: "a>c c>z a>b b>z", limit: 2, want: "a b z|a c z"},
		"a gap between the length": {edges: "a>z a>b b>c c>d d>z", limit: 5, want: "a z|a b c d z"},
		"none":                     {edges: "z>a", limit: 5},
		"none asked for":           {edges: "a>z", more: true},
	} {
		paths, more := parse(c.edges).SimplePaths("a", "z", c.limit)
		var got []string
		for _, p := range paths {
			got = append(got, joinEdges(p))
		}
		if strings.Join(got, "|") != c.want || more != c.more {
			t.Errorf("paths %s: %q, more %v; want %q, %v", name, got, more, c.want, c.more)
		}
	}
}

func TestSimplePathsEndInDenseGraph(t *testing.T) {
	paths, more := New(diamondChain(80), cmp.Compare).SimplePaths(0, 2*80, 100)
	if len(paths) != 100 || !more {
		t.Errorf("%d paths, more %v", len(paths), more)
	}
	// All simple paths of a dense part miss the end, so only the budget stops the search.
	var edges []Edge[int]
	for i := range 40 {
		for j := range 40 {
			edges = append(edges, Edge[int]{i, j})
		}
	}
	edges = append(edges, Edge[int]{0, 99})
	if paths, more = New(edges, cmp.Compare).SimplePaths(1, 99, 10); len(paths) != 1 && !more {
		t.Errorf("%d paths, more %v", len(paths), more)
	}
}

func TestUpstreamOfListsAllPredecessors(t *testing.T) {
	g := parse("a>b b>c x>y y>x y>c c>d")
	for of, want := range map[string]string{"b": "a b", "c": "a b c x y", "b x": "a b x y", "none": "", "": ""} {
		if got := joinEdges(g.UpstreamOf(slices.Values(strings.Fields(of)))); got != want {
			t.Errorf("upstream of %q is %q, want %q", of, got, want)
		}
	}
}

func TestClosureEqualsNaiveWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Rapid prefers small numbers, but some faults need many nodes.
		n := rapid.SampledFrom([]int{1, 2, 3, 5, 20, 64, 65}).Draw(t, "nodes")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		edges := make([]Edge[int], r.IntN(2*n+1))
		for i := range edges {
			edges[i] = Edge[int]{r.IntN(n), r.IntN(n)}
		}
		g := New(edges, cmp.Compare)
		naive := naiveClosure(edges)
		weight := func(n int) int { return n % 5 }
		gathered := g.UpstreamSumFunc(weight)
		for _, to := range g.Nodes() {
			sum := weight(to)
			for from := range g.NodesReaching(to) {
				sum += weight(from)
			}
			if gathered(to) != sum {
				t.Fatalf("%d gathers %d, want %d", to, gathered(to), sum)
			}
		}
		for _, from := range g.Nodes() {
			want := slices.Sorted(slices.Values(naive[from]))
			if got := slices.Collect(g.ReachableFrom(from)); !slices.Equal(got, want) || g.CountReachable(from) != len(want) {
				t.Fatalf("%d reaches %v (%d), want %v", from, got, g.CountReachable(from), want)
			}
			for to, path := range g.Paths(from) {
				if !slices.Equal(path, g.ShortestPath(from, to)) || len(path) < 2 || path[0] != from || path[len(path)-1] != to {
					t.Fatalf("path from %d to %d is %v or %v", from, to, path, g.ShortestPath(from, to))
				}
				for i := range path[1:] {
					if !slices.Contains(g.Successors(path[i]), path[i+1]) {
						t.Fatalf("path %v takes a step that is no edge", path)
					}
				}
				if all, _ := g.SimplePaths(from, to, 1); !slices.Equal(all[0], path) {
					t.Fatalf("the first of all paths is %v, the shortest %v", all[0], path)
				}
			}
		}
	})
}

// naiveClosure returns the closure by the naive algorithm: a breadth-first walk from each node.
func naiveClosure(edges []Edge[int]) map[int][]int {
	next := map[int][]int{}
	for _, e := range edges {
		next[e.From] = append(next[e.From], e.To)
	}
	reached := make(map[int][]int, len(next))
	for from := range next {
		seen := map[int]struct{}{from: {}}
		queue := []int{from}
		for head := 0; head < len(queue); head++ {
			for _, to := range next[queue[head]] {
				if _, ok := seen[to]; !ok {
					seen[to] = struct{}{}
					queue = append(queue, to)
				}
			}
		}
		reached[from] = queue[1:]
	}
	return reached
}
