package graph

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// anyGraph has cycles, loops, lone boxes, and several arrows between the same boxes.
func anyGraph(t *rapid.T) *Graph {
	g := &Graph{}
	for i := range rapid.IntRange(1, 25).Draw(t, "boxes") {
		b := &Box{Name: fmt.Sprintf("t%d", i), Owner: rapid.SampledFrom([]string{"", "iam", "a-very-long-owner-indeed"}).Draw(t, "owner")}
		for range rapid.IntRange(0, 20).Draw(t, "actions") {
			b.Actions = append(b.Actions, Action{Name: "view"})
		}
		g.Boxes = append(g.Boxes, b)
	}
	for range rapid.IntRange(0, 40).Draw(t, "arrows") {
		a := &Arrow{Relation: "parent", From: rapid.SampledFrom(g.Boxes).Draw(t, "from")}
		a.To = rapid.SliceOfNDistinct(rapid.SampledFrom(g.Boxes), 1, min(4, len(g.Boxes)), rapid.ID).Draw(t, "to")
		for range rapid.IntRange(0, 15).Draw(t, "flows") {
			a.Flows = append(a.Flows, Flow{"view", "edit"})
		}
		g.Arrows = append(g.Arrows, a)
	}
	return g
}

func draw(t *rapid.T) (*Graph, *drawing) {
	g := anyGraph(t)
	d, err := newDrawing(g)
	if err != nil {
		t.Fatal(err)
	}
	return g, d
}

func TestNothingInADrawingOverlaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		_, d := draw(t)
		d.order()
		d.place()
		for i, a := range d.nodes {
			if a.x < margin || a.y < margin {
				t.Errorf("node %d is at %d, %d", i, a.x, a.y)
			}
			for j, b := range d.nodes[:i] {
				if a.x < b.x+b.width && b.x < a.x+a.width && a.y < b.y+b.height+rowGap && b.y < a.y+a.height+rowGap {
					t.Errorf("nodes %d and %d overlap: %+v, %+v", i, j, a, b)
				}
			}
		}
	})
}

func TestEveryArrowReachesEachOfItsTargetsOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, d := draw(t)
		d.order()
		d.place()
		var want, got []string
		for i, a := range g.Arrows {
			for _, to := range a.To {
				want = append(want, fmt.Sprintf("%d %s", i, to.Name))
			}
		}
		for _, n := range d.nodes {
			for _, a := range n.loops {
				got = append(got, fmt.Sprintf("%d %s", slices.Index(g.Arrows, a), n.box.Name))
			}
		}
		for _, l := range d.lines {
			first, last := l.nodes[0], l.nodes[len(l.nodes)-1]
			if l.tip {
				got = append(got, fmt.Sprintf("%d %s", slices.Index(g.Arrows, first.label), last.box.Name))
			}
			if l.from < first.y || l.from > first.y+first.body || l.to < last.y || l.to > last.y+last.body {
				t.Errorf("a line from %d to %d misses %+v or %+v", l.from, l.to, first, last)
			}
			for i, n := range l.nodes[1:] {
				if distance := n.column - l.nodes[i].column; distance*distance != 1 {
					t.Errorf("a line skips columns: %d to %d", l.nodes[i].column, n.column)
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

func TestOrderNeverAddsCrossings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		_, d := draw(t)
		if got, want := d.crossings(), crossingsOneByOne(d); got != want {
			t.Fatalf("counted %d crossings of %d", got, want)
		}
		before := d.crossings()
		d.order()
		if after := d.crossings(); after > before {
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

func crossingsOneByOne(d *drawing) int {
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

func TestCrossingsThatCanBeAvoidedAre(t *testing.T) {
	t.Parallel()
	var boxes []*Box
	for i := range 8 {
		boxes = append(boxes, &Box{Name: fmt.Sprint(i)})
	}
	g := &Graph{Boxes: boxes}
	for i := range 4 {
		g.Arrows = append(g.Arrows, &Arrow{Relation: "r", From: boxes[i], To: []*Box{boxes[7-i]}})
	}
	d, err := newDrawing(g)
	if err != nil {
		t.Fatal(err)
	}
	before := d.crossings()
	if d.order(); before == 0 || d.crossings() != 0 {
		t.Errorf("%d crossings have become %d", before, d.crossings())
	}
}

// chain is a graph in which each box leads to the next, and a last one leads to that at the end.
func chain(length int) *Graph {
	g := &Graph{}
	for i := range length {
		g.Boxes = append(g.Boxes, &Box{Name: fmt.Sprint(i)})
	}
	for i, b := range g.Boxes[1:] {
		g.Arrows = append(g.Arrows, &Arrow{Relation: "r", From: g.Boxes[i], To: []*Box{b}})
	}
	near := &Box{Name: "near"}
	g.Arrows = append(g.Arrows, &Arrow{Relation: "r", From: near, To: []*Box{g.Boxes[length-1]}})
	g.Boxes = append(g.Boxes, near)
	return g
}

func TestABoxStandsNearToWhatItLeadsTo(t *testing.T) {
	t.Parallel()
	g := chain(5)
	d, err := newDrawing(g)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 2, 4, 6, 8, 6} {
		if got := d.boxes[g.Boxes[i]].column; got != want {
			t.Errorf("%s is in column %d, not %d", g.Boxes[i].Name, got, want)
		}
	}
}

func TestLoneBoxesStandInRowsBelow(t *testing.T) {
	t.Parallel()
	g := chain(2)
	for i := range 100 {
		g.Boxes = append(g.Boxes, &Box{Name: fmt.Sprintf("lone%d", i)})
	}
	d, err := newDrawing(g)
	if err != nil {
		t.Fatal(err)
	}
	d.order()
	d.place()
	bottom := 0
	for _, n := range slices.Concat(d.columns...) {
		bottom = max(bottom, n.y+n.height)
	}
	for _, b := range g.Boxes[3:] {
		if n := d.boxes[b]; n.y < bottom+rowGap || n.x+n.width > leastWidth {
			t.Errorf("%s is at %d, %d; the others end at %d", b.Name, n.x, n.y, bottom)
		}
	}
}
