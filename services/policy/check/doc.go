// Package check makes one valid policy of documents, or reports everything that is wrong with them.
//
// It merges the documents, declares names, expands unions and resolves every reference. It checks a binding on each of
// its types, and each condition on every target of its relation. The action of the condition must be bound there, even
// if the binding is for another action.
//
// Names have numbers, and the actions of a type are a bit set. So the work grows with the number of bindings, not with
// the number of paths between them.
package check
