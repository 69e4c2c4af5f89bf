// Package check makes one valid policy of documents, or tells everything that is wrong with them.
//
// Documents are put together, names are declared, unions expanded, and every reference is followed.
// A binding is checked on each type that it binds, and each condition on every type that its relation
// leads to: the condition's action must be bound there, whatever action the condition is for.
//
// Names have numbers here, and what is bound to a type is a row of bits, so that the work grows with
// the number of bindings and not with that of the paths between them.
package check
