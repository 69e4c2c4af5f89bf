package graph

import "slices"

// boxArrow is an arrow from one box to another.
type boxArrow struct{ from, to *vertex }

// assignLayers sets the column of every box, and returns the arrows that point left. Each of them closes a cycle; all others
// point right.
func (d *graphDrawing) assignLayers(g *Graph) map[boxArrow]bool {
	l := layerWalk{targets: map[*vertex][]*vertex{}, state: map[*vertex]int{}, back: map[boxArrow]bool{}}
	for _, a := range g.Edges {
		from := d.of[a.From]
		for _, b := range a.To {
			if to := d.of[b]; to != from && !b.Union {
				l.targets[from] = append(l.targets[from], to)
			}
		}
	}
	for _, n := range d.vertices {
		l.visitVertex(n)
	}
	l.assignColumns()
	return l.back
}

// layerWalk is a depth-first walk over the boxes.
type layerWalk struct {
	targets map[*vertex][]*vertex
	// state of a box is 0 before the walk, 1 during the walk below it, and 2 after that.
	state map[*vertex]int
	back  map[boxArrow]bool
	// sorted holds the boxes, each after all boxes that it leads to.
	sorted []*vertex
}

func (l *layerWalk) visitVertex(n *vertex) {
	if l.state[n] != 0 {
		return
	}
	l.state[n] = 1
	for _, to := range l.targets[n] {
		if l.state[to] == 1 {
			l.back[boxArrow{n, to}] = true
		}
		l.visitVertex(to)
	}
	l.state[n] = 2
	l.sorted = append(l.sorted, n)
}

// assignColumns puts every box two columns to the right of its last predecessor. A box without predecessors moves next to its
// targets.
func (l *layerWalk) assignColumns() {
	entered := map[*vertex]bool{}
	for _, n := range slices.Backward(l.sorted) {
		for _, to := range l.targets[n] {
			if !l.back[boxArrow{n, to}] {
				entered[to] = true
				to.column = max(to.column, n.column+2)
			}
		}
	}
	for _, n := range l.sorted {
		if entered[n] || len(l.targets[n]) == 0 {
			continue
		}
		nearest := -1
		for _, to := range l.targets[n] {
			if nearest < 0 || to.column < nearest {
				nearest = to.column
			}
		}
		n.column = max(n.column, nearest-2)
	}
}
