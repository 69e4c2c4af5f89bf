// Package closure answers what follows from what in a directed graph that may have cycles:
// what a node reaches and what reaches it, by which shortest or next shortest paths, and
// which nodes reach each other.
//
// The nodes of a cycle all reach the same, so the closure is kept per strongly connected
// component, as a set of bits: it takes O(V + E·V/64) steps, whatever the shape. Counting
// paths is exponential; so paths are found within a budget.
package closure
