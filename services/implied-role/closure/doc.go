// Package closure computes the transitive closure of a directed graph that may have cycles. It answers which nodes a
// node reaches, which nodes reach it, along which paths, and which nodes reach each other.
//
// All nodes of a cycle reach the same nodes, so the closure is kept per strongly connected component, as a set of bits.
// It takes O(V + E·V/64) steps for every shape of the graph. The number of paths can be exponential, so the search for
// paths stops at a budget.
package closure
