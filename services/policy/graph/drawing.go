package graph

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

const (
	// maxBoxes is how many types a drawing has at most, and maxNodes how many arrows, lines, boxes, labels and bends each.
	maxBoxes = 200
	maxNodes = 10_000
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

// drawing is a graph in columns. Boxes stand in the even ones, the labels of arrows between them; a line
// that passes a column has a bend there.
type drawing struct {
	boxes   map[*Box]*node
	nodes   []*node
	columns [][]*node
	// lone are the boxes that are connected with no other. They stand in no column, but below all.
	lone  []*node
	lines []*line
}

// node is a box, a label, or a bend, which has neither.
type node struct {
	box   *Box
	label *Arrow
	// loops are arrows of the box to itself. They are drawn below it.
	loops []*Arrow

	column, row int
	x, y        int
	width       int
	// height is all the room it takes, body that of the box without its loops.
	height, body int
	left, right  []*node
}

// middle is where lines meet it.
func (n *node) middle() int { return n.y + n.body/2 }

// line is what is drawn of an arrow from one box or label to the next. All nodes between are bends.
type line struct {
	nodes []*node
	// tip says that it ends in the head of the arrow.
	tip bool
	// from and to are the heights of its ends.
	from, to int
}

func newDrawing(g *Graph) (*drawing, error) {
	if len(g.Boxes) > maxBoxes {
		return nil, fmt.Errorf("the graph has %d types, and a drawing at most %d: filter by type, action or owner", len(g.Boxes), maxBoxes)
	}
	d := &drawing{boxes: map[*Box]*node{}}
	for _, b := range g.Boxes {
		d.boxes[b] = d.add(&node{box: b})
	}
	back := d.layer(g)
	for i, a := range g.Arrows {
		d.arrow(a, back)
		if max(i, len(d.lines), len(d.nodes)) > maxNodes {
			return nil, errors.New("the graph has too many arrows to draw them: filter by type, action or owner")
		}
	}
	d.fill()
	return d, nil
}

// fill puts the nodes into their columns.
func (d *drawing) fill() {
	for _, n := range d.nodes {
		n.measure()
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

func (d *drawing) add(n *node) *node {
	d.nodes = append(d.nodes, n)
	return n
}

// arrow adds a label for the targets to the right, one for those to the left, and the lines.
func (d *drawing) arrow(a *Arrow, back map[edge]bool) {
	from := d.boxes[a.From]
	labels := map[bool]*node{}
	for _, b := range a.To {
		to := d.boxes[b]
		if to == from {
			from.loops = append(from.loops, a)
			continue
		}
		leftwards := back[edge{from, to}]
		if labels[leftwards] == nil {
			labels[leftwards] = d.add(&node{label: a, column: from.column + step(leftwards)})
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

func (d *drawing) line(from, to *node, step int) *line {
	l := &line{nodes: []*node{from}}
	for last := from; last != to; {
		next := to
		if column := last.column + step; column != to.column {
			next = d.add(&node{column: column})
		}
		connect(last, next)
		l.nodes = append(l.nodes, next)
		last = next
	}
	d.lines = append(d.lines, l)
	return l
}

func connect(a, b *node) {
	if a.column > b.column {
		a, b = b, a
	}
	a.right, b.left = append(a.right, b), append(b.left, a)
}

// measure finds out how much room a node takes.
func (n *node) measure() {
	switch {
	case n.label != nil:
		n.width, n.height = n.label.size()
		n.body = n.height
	case n.box != nil:
		n.width = 2*padding + width(n.box.Name, titleTenths)
		n.body = 2*padding + lineHeight
		if n.box.Owner != "" {
			n.width, n.body = max(n.width, 2*padding+width(n.box.Owner, letterTenths)), n.body+lineHeight
		}
		for _, line := range lines(n.box.Actions) {
			n.width, n.body = max(n.width, 2*padding+width(line, letterTenths)), n.body+lineHeight
		}
		n.height = n.body
		for _, a := range n.loops {
			w, h := a.size()
			n.width, n.height = max(n.width, w+4*loopInset), n.height+h+loopGap
		}
		if len(n.loops) > 0 {
			n.height += loopGap
		}
	}
}

// size is that of an arrow's label.
func (a *Arrow) size() (int, int) {
	w, h := width(a.Relation, letterTenths), lineHeight
	for _, line := range lines(a.Flows) {
		w, h = max(w, width(line, letterTenths)), h+lineHeight
	}
	return w + 2*padding, h + padding
}

func width(s string, tenths int) int {
	return (utf8.RuneCountInString(printable(s))*tenths + 9) / 10
}
