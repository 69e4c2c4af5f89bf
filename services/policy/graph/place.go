package graph

import (
	"cmp"
	"slices"
)

const (
	margin = 16
	// leastWidth is the smallest width of a row of lone boxes.
	leastWidth = 900
	// settlings is the number of passes that settle the columns. bendWeight is the weight of a bend against 1 of a box;
	// it straightens long lines.
	settlings  = 40
	bendWeight = 8
)

// placeVertices sets the position of every vertex: columns side by side, each vertex as near to the height of its neighbors as
// the order allows.
func (d *graphDrawing) placeVertices() {
	x := margin
	for _, column := range d.columns {
		widest := 0
		for _, n := range column {
			widest = max(widest, n.width)
		}
		for _, n := range column {
			n.x = x + (widest-n.width)/2
			if n.isBend() {
				n.x, n.width = x, widest
			}
		}
		x += widest + columnGap
		moveToNeighbors(column, func(*vertex) []*vertex { return nil })
	}
	for i := range settlings {
		for j := range d.columns {
			switch {
			case i >= settlings*3/4:
				moveToNeighbors(d.columns[j], func(n *vertex) []*vertex { return slices.Concat(n.left, n.right) })
			case i%2 == 0:
				moveToNeighbors(d.columns[j], func(n *vertex) []*vertex { return n.left })
			default:
				moveToNeighbors(d.columns[len(d.columns)-1-j], func(n *vertex) []*vertex { return n.right })
			}
		}
	}
	d.moveToMargin()
	d.attachLineEnds()
}

// moveToMargin moves the drawing to the top margin, and puts the lone boxes below.
func (d *graphDrawing) moveToMargin() {
	connected := slices.Concat(d.columns...)
	top, right, bottom := 0, leastWidth, margin
	for i, n := range connected {
		if i == 0 || n.y < top {
			top = n.y
		}
	}
	for _, n := range connected {
		n.y += margin - top
		right, bottom = max(right, n.x+n.width), max(bottom, n.y+n.height+rowGap)
	}
	x, y := margin, bottom
	for _, n := range d.lone {
		if x > margin && x+n.width > right {
			x, y = margin, bottom
		}
		n.x, n.y = x, y
		x, bottom = x+n.width+rowGap, max(bottom, y+n.height+rowGap)
	}
}

// vertexBlock is a run of adjacent vertices. wish is the weighted sum of their desired heights.
type vertexBlock struct{ wish, weight, vertices int }

// topY returns the height of the first vertex.
func (b vertexBlock) topY() int {
	top := b.wish / b.weight
	if b.wish%b.weight < 0 {
		top--
	}
	return top
}

func (b vertexBlock) mergeBlocks(o vertexBlock) vertexBlock {
	return vertexBlock{wish: b.wish + o.wish, weight: b.weight + o.weight, vertices: b.vertices + o.vertices}
}

func (n *vertex) isBend() bool { return n.box == nil && n.label == nil }

func (n *vertex) placementWeight() int {
	if n.isBend() {
		return bendWeight
	}
	return 1
}

// moveToNeighbors moves the vertices of a column as near as possible to their neighbors, and keeps their order. Vertices that
// overlap become a block at the mean of their desired heights.
func moveToNeighbors(column []*vertex, neighbours func(*vertex) []*vertex) {
	var blocks []vertexBlock
	offset := 0
	for _, n := range column {
		wish := n.y
		if near := neighbours(n); len(near) > 0 {
			sum := 0
			for _, m := range near {
				sum += m.connectionY()
			}
			wish = sum/len(near) - n.body/2
		}
		blocks = append(blocks, vertexBlock{wish: (wish - offset) * n.placementWeight(), weight: n.placementWeight(), vertices: 1})
		for last := len(blocks) - 1; last > 0 && blocks[last-1].topY() > blocks[last].topY(); last-- {
			blocks[last-1] = blocks[last-1].mergeBlocks(blocks[last])
			blocks = blocks[:last]
		}
		offset += n.height + rowGap
	}
	i, offset := 0, 0
	for _, b := range blocks {
		for range b.vertices {
			column[i].y = b.topY() + offset
			offset += column[i].height + rowGap
			i++
		}
	}
}

// lineEnd is one end of a line.
type lineEnd struct {
	height *int
	// other is the height of the next vertex on the line.
	other int
}

// attachLineEnds spreads the ends of lines over the sides of boxes, in the order of their other ends.
func (d *graphDrawing) attachLineEnds() {
	type side struct {
		of   *vertex
		left bool
	}
	ends, sides := map[side][]lineEnd{}, []side(nil)
	note := func(of, next *vertex, height *int) {
		s := side{of, next.column < of.column}
		if ends[s] == nil {
			sides = append(sides, s)
		}
		ends[s] = append(ends[s], lineEnd{height, next.connectionY()})
	}
	for _, l := range d.lines {
		last := len(l.vertices) - 1
		note(l.vertices[0], l.vertices[1], &l.from)
		note(l.vertices[last], l.vertices[last-1], &l.to)
	}
	for _, s := range sides {
		all := ends[s]
		slices.SortStableFunc(all, func(a, b lineEnd) int { return cmp.Compare(a.other, b.other) })
		for i, e := range all {
			*e.height = s.of.connectionY()
			if s.of.box != nil {
				*e.height = s.of.y + s.of.body*(i+1)/(len(all)+1)
			}
		}
	}
}
