package graph

import "slices"

// arc is an arrow from one box to another.
type arc struct{ from, to *vertex }

// layer sets the column of every box, and returns the arrows that point left. Each of them closes a cycle; all others
// point right.
func (d *drawing) layer(g *Graph) map[arc]bool {
	l := layering{targets: map[*vertex][]*vertex{}, state: map[*vertex]int{}, back: map[arc]bool{}}
	for _, a := range g.Edges {
		from := d.of[a.From]
		for _, b := range a.To {
			if to := d.of[b]; to != from && !b.Union {
				l.targets[from] = append(l.targets[from], to)
			}
		}
	}
	for _, n := range d.vertices {
		l.visit(n)
	}
	l.columns()
	return l.back
}

// layering is a depth-first walk over the boxes.
type layering struct {
	targets map[*vertex][]*vertex
	// state of a box is 0 before the walk, 1 during the walk below it, and 2 after that.
	state map[*vertex]int
	back  map[arc]bool
	// sorted holds the boxes, each after all boxes that it leads to.
	sorted []*vertex
}

func (l *layering) visit(n *vertex) {
	if l.state[n] != 0 {
		return
	}
	l.state[n] = 1
	for _, to := range l.targets[n] {
		if l.state[to] == 1 {
			l.back[arc{n, to}] = true
		}
		l.visit(to)
	}
	l.state[n] = 2
	l.sorted = append(l.sorted, n)
}

// columns puts every box two columns to the right of its last predecessor. A box without predecessors moves next to its
// targets.
func (l *layering) columns() {
	entered := map[*vertex]bool{}
	for _, n := range slices.Backward(l.sorted) {
		for _, to := range l.targets[n] {
			if !l.back[arc{n, to}] {
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
