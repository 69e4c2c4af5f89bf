package graph

import (
	"cmp"
	"slices"
)

// sweeps is the number of passes that improve the order of the columns.
const sweeps = 12

// reduceCrossings arranges the columns so that few lines cross. It puts vertices near their neighbors.
func (d *graphDrawing) reduceCrossings() {
	best, crossings := d.currentRows(), d.countCrossings()
	for i := range sweeps {
		for j := range d.columns {
			if i%2 == 0 {
				sortByNeighbours(d.columns[j], func(n *vertex) []*vertex { return n.left })
			} else {
				sortByNeighbours(d.columns[len(d.columns)-1-j], func(n *vertex) []*vertex { return n.right })
			}
		}
		if c := d.countCrossings(); c < crossings {
			best, crossings = d.currentRows(), c
		}
	}
	for i, n := range d.vertices {
		n.row = best[i]
	}
	for _, column := range d.columns {
		slices.SortFunc(column, func(a, b *vertex) int { return cmp.Compare(a.row, b.row) })
	}
}

func (d *graphDrawing) currentRows() []int {
	rows := make([]int, len(d.vertices))
	for i, n := range d.vertices {
		rows[i] = n.row
	}
	return rows
}

// sortByNeighbours sorts a column by the mean row of the neighbors of each vertex.
func sortByNeighbours(column []*vertex, neighbours func(*vertex) []*vertex) {
	// The unit is a thousandth of a row: integers are the same on every machine.
	wish := make(map[*vertex]int, len(column))
	for _, n := range column {
		wish[n] = 1000 * n.row
		if near := neighbours(n); len(near) > 0 {
			sum := 0
			for _, m := range near {
				sum += 1000 * m.row
			}
			wish[n] = sum / len(near)
		}
	}
	slices.SortStableFunc(column, func(a, b *vertex) int { return cmp.Compare(wish[a], wish[b]) })
	for i, n := range column {
		n.row = i
	}
}

// countCrossings counts the pairs of lines that cross between two columns.
func (d *graphDrawing) countCrossings() int {
	total := 0
	for i := range len(d.columns) - 1 {
		total += countInversions(d.columns[i], len(d.columns[i+1]))
	}
	return total
}

// countInversions counts pairs of lines whose ends are in the opposite order of their beginnings. It uses a tree of partial
// sums over the rows of the next column.
func countInversions(column []*vertex, rows int) int {
	sums, seen, total := make([]int, rows+1), 0, 0
	for _, n := range column {
		for _, m := range n.right {
			upTo := 0
			for i := m.row + 1; i > 0; i -= i & -i {
				upTo += sums[i]
			}
			total += seen - upTo
		}
		for _, m := range n.right {
			seen++
			for i := m.row + 1; i <= rows; i += i & -i {
				sums[i]++
			}
		}
	}
	return total
}
