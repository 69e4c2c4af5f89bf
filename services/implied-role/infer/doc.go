// Package infer decides which RoleBindings follow from the rules and the explicit
// RoleBindings of one namespace, and what to say about each rule. It does no I/O and reads
// no clock: the same objects give the same answer, in whatever order they came.
//
// A rule says that whoever holds its parent role also holds its child role. Rules make a
// graph; for each explicit binding and each role that its role reaches in the graph there
// is one generated binding, with the same subjects, that belongs to the explicit one. Its
// name follows from those two, so nothing is ever renamed, and what stays wanted stays in
// place. A generated binding is never a source of others.
//
// [RuleSet] is the rules with their closure, [RuleSet.Plan] what is to be done about one
// explicit binding, [Schedule] in which order, [RuleSet.Status] what a rule's status is.
// [Infer] is all of it at once, which is what the rest must agree with.
package infer
