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

// graphDrawing is a graph in columns. Even columns hold boxes, and the columns between them the labels of arrows. A line
// that passes a column has a bend there.
type graphDrawing struct {
	brief bool
	// of holds the box of each node.
	of       map[*Node]*vertex
	vertices []*vertex
	columns  [][]*vertex
	// lone holds the boxes without connections. They are placed below all columns.
	lone  []*vertex
	lines []*arrowLine
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

// connectionY returns the height at which lines meet the vertex.
func (n *vertex) connectionY() int { return n.y + n.body/2 }

// arrowLine is the part of an arrow from one box or label to the next. All vertices between are bends.
type arrowLine struct {
	vertices []*vertex
	// tip is true if the line ends with the head of the arrow.
	tip bool
	// from and to are the heights of the ends.
	from, to int
}

func newDrawing(g *Graph) (*graphDrawing, error) {
	types := 0
	for _, n := range g.Nodes {
		if !n.Union {
			types++
		}
	}
	if types > maxBoxes {
		return nil, fmt.Errorf("the graph has %d types, and a drawing at most %d: filter by type, action or owner", types, maxBoxes)
	}
	d := &graphDrawing{brief: g.Brief, of: map[*Node]*vertex{}}
	for _, b := range g.Nodes {
		d.of[b] = d.addVertex(&vertex{box: b})
	}
	back := d.assignLayers(g)
	for i, a := range g.Edges {
		d.addArrow(a, back)
		if max(i, len(d.lines), len(d.vertices)) > maxVertices {
			return nil, errors.New("the graph has too many arrows to draw them: filter by type, action or owner")
		}
	}
	d.placeVerticesInColumns()
	return d, nil
}

// placeVerticesInColumns puts the vertices into their columns.
func (d *graphDrawing) placeVerticesInColumns() {
	for _, n := range d.vertices {
		n.computeSize(d.brief)
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

func (d *graphDrawing) addVertex(n *vertex) *vertex {
	d.vertices = append(d.vertices, n)
	return n
}

// addArrow adds a label for the targets to the right, another for those to the left, and the lines.
func (d *graphDrawing) addArrow(a *Edge, back map[boxArrow]bool) {
	from := d.of[a.From]
	labels := map[bool]*vertex{}
	for _, b := range a.To {
		to := d.of[b]
		if to == from {
			from.loops = append(from.loops, a)
			continue
		}
		leftwards := back[boxArrow{from, to}]
		if b.Union {
			// Many edges lead to a union, and lines would hide the rest: the label names the union instead.
			d.addLine(from, d.addVertex(&vertex{label: a, column: from.column + 1}), 1)
			continue
		}
		if a.Relation == "" {
			d.addLine(from, to, columnStep(leftwards)).tip = true
			continue
		}
		if labels[leftwards] == nil {
			labels[leftwards] = d.addVertex(&vertex{label: a, column: from.column + columnStep(leftwards)})
			d.addLine(from, labels[leftwards], columnStep(leftwards)).tip = false
		}
		d.addLine(labels[leftwards], to, columnStep(leftwards)).tip = true
	}
}

func columnStep(leftwards bool) int {
	if leftwards {
		return -1
	}
	return 1
}

func (d *graphDrawing) addLine(from, to *vertex, step int) *arrowLine {
	l := &arrowLine{vertices: []*vertex{from}}
	for last := from; last != to; {
		next := to
		if column := last.column + step; column != to.column {
			next = d.addVertex(&vertex{column: column})
		}
		connectVertices(last, next)
		l.vertices = append(l.vertices, next)
		last = next
	}
	d.lines = append(d.lines, l)
	return l
}

func connectVertices(a, b *vertex) {
	if a.column > b.column {
		a, b = b, a
	}
	a.right, b.left = append(a.right, b), append(b.left, a)
}

// computeSize computes the size of a vertex.
func (n *vertex) computeSize(brief bool) {
	switch {
	case n.label != nil:
		n.width, n.height = n.label.labelSize(brief)
		n.body = n.height
	case n.box != nil:
		n.width = 2*padding + textWidth(n.box.Name, titleTenths)
		n.body = 2*padding + lineHeight
		if kind := n.box.subtitle(); kind != "" {
			n.width, n.body = max(n.width, 2*padding+textWidth(kind, letterTenths)), n.body+lineHeight
		}
		for _, line := range listLines(n.box.Actions, brief) {
			n.width, n.body = max(n.width, 2*padding+textWidth(line, letterTenths)), n.body+lineHeight
		}
		n.height = n.body
		for _, a := range n.loops {
			w, h := a.labelSize(brief)
			n.width, n.height = max(n.width, w+4*loopInset), n.height+h+loopGap
		}
		if len(n.loops) > 0 {
			n.height += loopGap
		}
	}
}

// labelSize returns the width and height of the edge's label.
func (a *Edge) labelSize(brief bool) (int, int) {
	w, h := textWidth(a.Relation, letterTenths), lineHeight
	for _, line := range a.labelLines(brief) {
		w, h = max(w, textWidth(line, letterTenths)), h+lineHeight
	}
	return w + 2*padding, h + padding
}

func textWidth(s string, tenths int) int {
	return (utf8.RuneCountInString(printableText(s))*tenths + 9) / 10
}
