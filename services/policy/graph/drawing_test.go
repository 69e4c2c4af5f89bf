package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/policy/internal/policytest"
)

// randomGraph returns a random graph with cycles, loops, lone boxes, and several arrows between the same boxes.
func randomGraph(r *rand.Rand) *Graph {
	g := &Graph{Brief: r.IntN(2) == 0}
	owners := []string{"", "iam", "a-very-long-owner-indeed"}
	for i := range 1 + r.IntN(25) {
		g.Nodes = append(g.Nodes, &Node{
			Name: fmt.Sprintf("t%d", i), Owner: owners[r.IntN(len(owners))], Actions: slices.Repeat([]Action{{Name: "view"}}, r.IntN(21)),
		})
	}
	for range r.IntN(41) {
		to := slices.Clone(g.Nodes)
		r.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
		g.Edges = append(g.Edges, &Edge{
			Relation: "parent", From: g.Nodes[r.IntN(len(g.Nodes))], To: to[:1+r.IntN(min(4, len(to)))],
			Flows: slices.Repeat([]ActionFlow{{"view", "edit"}}, r.IntN(16)),
		})
	}
	if len(g.Nodes) > 3 && g.Brief {
		u := &Node{Name: "u", Union: true}
		for _, e := range g.Edges[:len(g.Edges)/2] {
			e.To = []*Node{u}
		}
		g.Nodes, g.Edges = append(g.Nodes, u), append(g.Edges, &Edge{From: u, To: g.Nodes[:3]})
	}
	return g
}

// forEachRandomGraph runs a test on drawings of random graphs.
func forEachRandomGraph(t *testing.T, test func(t *testing.T, g *Graph, d *graphDrawing)) {
	t.Helper()
	for seed := range policytest.SeedRange(t, 100) {
		g := randomGraph(rand.New(rand.NewPCG(seed, seed)))
		d, err := newDrawing(g)
		if err != nil {
			t.Fatal(err)
		}
		if test(t, g, d); t.Failed() {
			t.Fatalf("the graph of seed %d", seed)
		}
	}
}

func TestDrawingDoesNotOverlap(t *testing.T) {
	t.Parallel()
	forEachRandomGraph(t, func(t *testing.T, _ *Graph, d *graphDrawing) {
		d.reduceCrossings()
		d.placeVertices()
		for i, a := range d.vertices {
			if a.x < margin || a.y < margin {
				t.Errorf("node %d is at %d, %d", i, a.x, a.y)
			}
			for j, b := range d.vertices[:i] {
				if a.x < b.x+b.width && b.x < a.x+a.width && a.y < b.y+b.height+rowGap && b.y < a.y+a.height+rowGap {
					t.Errorf("nodes %d and %d overlap: %+v, %+v", i, j, a, b)
				}
			}
		}
	})
}

func TestArrowsReachEachTargetOnce(t *testing.T) {
	t.Parallel()
	forEachRandomGraph(t, func(t *testing.T, g *Graph, d *graphDrawing) {
		d.reduceCrossings()
		d.placeVertices()
		var want, got []string
		for i, a := range g.Edges {
			for _, to := range a.To {
				if !to.Union {
					want = append(want, fmt.Sprintf("%d %s", i, to.Name))
				}
			}
		}
		for _, n := range d.vertices {
			for _, a := range n.loops {
				got = append(got, fmt.Sprintf("%d %s", slices.Index(g.Edges, a), n.box.Name))
			}
		}
		for _, l := range d.lines {
			first, last := l.vertices[0], l.vertices[len(l.vertices)-1]
			if l.tip {
				of := slices.IndexFunc(g.Edges, func(e *Edge) bool {
					return e == first.label || first.box != nil && e.From == first.box && e.Relation == ""
				})
				got = append(got, fmt.Sprintf("%d %s", of, last.box.Name))
			}
			if l.from < first.y || l.from > first.y+first.body || l.to < last.y || l.to > last.y+last.body {
				t.Errorf("a line from %d to %d misses %+v or %+v", l.from, l.to, first, last)
			}
			for i, n := range l.vertices[1:] {
				if distance := n.column - l.vertices[i].column; distance*distance != 1 {
					t.Errorf("a line skips columns: %d to %d", l.vertices[i].column, n.column)
				}
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestReduceCrossingsNeverAddsCrossings(t *testing.T) {
	t.Parallel()
	forEachRandomGraph(t, func(t *testing.T, _ *Graph, d *graphDrawing) {
		if got, want := d.countCrossings(), crossingsOneByOne(d); got != want {
			t.Fatalf("counted %d crossings of %d", got, want)
		}
		before := d.countCrossings()
		d.reduceCrossings()
		if after := d.countCrossings(); after > before {
			t.Errorf("%d crossings have become %d", before, after)
		}
		for _, column := range d.columns {
			for i, n := range column {
				if n.row != i {
					t.Errorf("row %d says it is row %d", i, n.row)
				}
			}
		}
	})
}

func crossingsOneByOne(d *graphDrawing) int {
	total := 0
	for _, column := range d.columns {
		for i, a := range column {
			for _, b := range column[:i] {
				for _, x := range a.right {
					for _, y := range b.right {
						if y.row > x.row {
							total++
						}
					}
				}
			}
		}
	}
	return total
}

func TestReduceCrossingsAvoidsCrossings(t *testing.T) {
	t.Parallel()
	var boxes []*Node
	for i := range 8 {
		boxes = append(boxes, &Node{Name: fmt.Sprint(i)})
	}
	g := &Graph{Nodes: boxes}
	for i := range 4 {
		g.Edges = append(g.Edges, &Edge{Relation: "r", From: boxes[i], To: []*Node{boxes[7-i]}})
	}
	d, err := newDrawing(g)
	if err != nil {
		t.Fatal(err)
	}
	before := d.countCrossings()
	if d.reduceCrossings(); before == 0 || d.countCrossings() != 0 {
		t.Errorf("%d crossings have become %d", before, d.countCrossings())
	}
}

// chainGraph returns a graph in which each box leads to the next, and one more box leads to the end.
func chainGraph(length int) *Graph {
	g := &Graph{}
	for i := range length {
		g.Nodes = append(g.Nodes, &Node{Name: fmt.Sprint(i)})
	}
	for i, b := range g.Nodes[1:] {
		g.Edges = append(g.Edges, &Edge{Relation: "r", From: g.Nodes[i], To: []*Node{b}})
	}
	near := &Node{Name: "near"}
	g.Edges = append(g.Edges, &Edge{Relation: "r", From: near, To: []*Node{g.Nodes[length-1]}})
	g.Nodes = append(g.Nodes, near)
	return g
}

func TestPlaceVerticesKeepsNeighborsClose(t *testing.T) {
	t.Parallel()
	g := chainGraph(5)
	d, err := newDrawing(g)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 2, 4, 6, 8, 6} {
		if got := d.of[g.Nodes[i]].column; got != want {
			t.Errorf("%s is in column %d, not %d", g.Nodes[i].Name, got, want)
		}
	}
}

func TestPlaceVerticesPutsLoneBoxesBelow(t *testing.T) {
	t.Parallel()
	g := chainGraph(2)
	for i := range 100 {
		g.Nodes = append(g.Nodes, &Node{Name: fmt.Sprintf("lone%d", i)})
	}
	d, err := newDrawing(g)
	if err != nil {
		t.Fatal(err)
	}
	d.reduceCrossings()
	d.placeVertices()
	bottom := 0
	for _, n := range slices.Concat(d.columns...) {
		bottom = max(bottom, n.y+n.height)
	}
	for _, b := range g.Nodes[3:] {
		if n := d.of[b]; n.y < bottom+rowGap || n.x+n.width > leastWidth {
			t.Errorf("%s is at %d, %d; the others end at %d", b.Name, n.x, n.y, bottom)
		}
	}
}
