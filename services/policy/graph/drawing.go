package graph

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

const (
	// maxBoxes bounds the types of a drawing. maxVertices bounds its arrows, its lines, and its boxes, labels and
	// bends.
	maxBoxes    = 200
	maxVertices = 10_000
)

// Measures of a drawing, in pixels.
const (
	lineHeight   = 17
	padding      = 10
	columnGap    = 46
	rowGap       = 18
	loopInset    = 18
	loopGap      = 6
	letterTenths = 73
	titleTenths  = 86
)

// drawing is a graph in columns. Even columns hold boxes, and the columns between them the labels of arrows. A line
// that passes a column has a bend there.
type drawing struct {
	brief bool
	// of holds the box of each node.
	of       map[*Node]*vertex
	vertices []*vertex
	columns  [][]*vertex
	// lone holds the boxes without connections. They are placed below all columns.
	lone  []*vertex
	lines []*line
}

// vertex is a box for a node, a label for an edge, or a bend, which has neither.
type vertex struct {
	box   *Node
	label *Edge
	// loops holds the arrows from the box to itself, which are drawn below it.
	loops []*Edge

	column, row int
	x, y        int
	width       int
	// height is the total height, body the height of the box without its loops.
	height, body int
	left, right  []*vertex
}

// middle returns the height at which lines meet the vertex.
func (n *vertex) middle() int { return n.y + n.body/2 }

// line is the part of an arrow from one box or label to the next. All vertices between are bends.
type line struct {
	vertices []*vertex
	// tip is true if the line ends with the head of the arrow.
	tip bool
	// from and to are the heights of the ends.
	from, to int
}

func newDrawing(g *Graph) (*drawing, error) {
	types := 0
	for _, n := range g.Nodes {
		if !n.Union {
			types++
		}
	}
	if types > maxBoxes {
		return nil, fmt.Errorf("the graph has %d types, and a drawing at most %d: filter by type, action or owner", types, maxBoxes)
	}
	d := &drawing{brief: g.Brief, of: map[*Node]*vertex{}}
	for _, b := range g.Nodes {
		d.of[b] = d.add(&vertex{box: b})
	}
	back := d.layer(g)
	for i, a := range g.Edges {
		d.arrow(a, back)
		if max(i, len(d.lines), len(d.vertices)) > maxVertices {
			return nil, errors.New("the graph has too many arrows to draw them: filter by type, action or owner")
		}
	}
	d.fill()
	return d, nil
}

// fill puts the vertices into their columns.
func (d *drawing) fill() {
	for _, n := range d.vertices {
		n.measure(d.brief)
		if len(n.left)+len(n.right) == 0 {
			d.lone = append(d.lone, n)
			continue
		}
		for len(d.columns) <= n.column {
			d.columns = append(d.columns, nil)
		}
		n.row = len(d.columns[n.column])
		d.columns[n.column] = append(d.columns[n.column], n)
	}
}

func (d *drawing) add(n *vertex) *vertex {
	d.vertices = append(d.vertices, n)
	return n
}

// arrow adds a label for the targets to the right, another for those to the left, and the lines.
func (d *drawing) arrow(a *Edge, back map[arc]bool) {
	from := d.of[a.From]
	labels := map[bool]*vertex{}
	for _, b := range a.To {
		to := d.of[b]
		if to == from {
			from.loops = append(from.loops, a)
			continue
		}
		leftwards := back[arc{from, to}]
		if b.Union {
			// Many edges lead to a union, and lines would hide the rest: the label names the union instead.
			d.line(from, d.add(&vertex{label: a, column: from.column + 1}), 1)
			continue
		}
		if a.Relation == "" {
			d.line(from, to, step(leftwards)).tip = true
			continue
		}
		if labels[leftwards] == nil {
			labels[leftwards] = d.add(&vertex{label: a, column: from.column + step(leftwards)})
			d.line(from, labels[leftwards], step(leftwards)).tip = false
		}
		d.line(labels[leftwards], to, step(leftwards)).tip = true
	}
}

func step(leftwards bool) int {
	if leftwards {
		return -1
	}
	return 1
}

func (d *drawing) line(from, to *vertex, step int) *line {
	l := &line{vertices: []*vertex{from}}
	for last := from; last != to; {
		next := to
		if column := last.column + step; column != to.column {
			next = d.add(&vertex{column: column})
		}
		connect(last, next)
		l.vertices = append(l.vertices, next)
		last = next
	}
	d.lines = append(d.lines, l)
	return l
}

func connect(a, b *vertex) {
	if a.column > b.column {
		a, b = b, a
	}
	a.right, b.left = append(a.right, b), append(b.left, a)
}

// measure computes the size of a vertex.
func (n *vertex) measure(brief bool) {
	switch {
	case n.label != nil:
		n.width, n.height = n.label.size(brief)
		n.body = n.height
	case n.box != nil:
		n.width = 2*padding + width(n.box.Name, titleTenths)
		n.body = 2*padding + lineHeight
		if kind := n.box.kind(); kind != "" {
			n.width, n.body = max(n.width, 2*padding+width(kind, letterTenths)), n.body+lineHeight
		}
		for _, line := range lines(n.box.Actions, brief) {
			n.width, n.body = max(n.width, 2*padding+width(line, letterTenths)), n.body+lineHeight
		}
		n.height = n.body
		for _, a := range n.loops {
			w, h := a.size(brief)
			n.width, n.height = max(n.width, w+4*loopInset), n.height+h+loopGap
		}
		if len(n.loops) > 0 {
			n.height += loopGap
		}
	}
}

// size returns the width and height of the edge's label.
func (a *Edge) size(brief bool) (int, int) {
	w, h := width(a.Relation, letterTenths), lineHeight
	for _, line := range a.lines(brief) {
		w, h = max(w, width(line, letterTenths)), h+lineHeight
	}
	return w + 2*padding, h + padding
}

func width(s string, tenths int) int {
	return (utf8.RuneCountInString(printable(s))*tenths + 9) / 10
}
