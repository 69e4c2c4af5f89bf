package graph

import "slices"

// edge leads from a box to another one.
type edge struct{ from, to *node }

// layer gives every box its column, such that arrows lead to the right except for one in each cycle,
// and returns those that lead back.
func (d *drawing) layer(g *Graph) map[edge]bool {
	l := layering{targets: map[*node][]*node{}, state: map[*node]int{}, back: map[edge]bool{}}
	for _, a := range g.Arrows {
		from := d.boxes[a.From]
		for _, b := range a.To {
			if to := d.boxes[b]; to != from {
				l.targets[from] = append(l.targets[from], to)
			}
		}
	}
	for _, n := range d.nodes {
		l.visit(n)
	}
	l.columns()
	return l.back
}

// layering walks the boxes depth first.
type layering struct {
	targets map[*node][]*node
	// state of a box is 0 at first, 1 while the walk is beyond it, 2 when it has returned.
	state map[*node]int
	back  map[edge]bool
	// sorted are the boxes, each after all those that it leads to.
	sorted []*node
}

func (l *layering) visit(n *node) {
	if l.state[n] != 0 {
		return
	}
	l.state[n] = 1
	for _, to := range l.targets[n] {
		if l.state[to] == 1 {
			l.back[edge{n, to}] = true
		}
		l.visit(to)
	}
	l.state[n] = 2
	l.sorted = append(l.sorted, n)
}

// columns puts every box two columns to the right of the last one that leads to it, and one to which nothing leads near to its targets.
func (l *layering) columns() {
	entered := map[*node]bool{}
	for _, n := range slices.Backward(l.sorted) {
		for _, to := range l.targets[n] {
			if !l.back[edge{n, to}] {
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
