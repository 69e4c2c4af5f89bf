// Package infer computes which RoleBindings follow from the rules and the explicit RoleBindings of one namespace, and
// the status of each rule. It does no I/O and reads no clock: the same objects give the same result in every order.
//
// A rule gives its child role to all subjects that have its parent role. The rules form a graph. For each explicit
// binding and each role that its role reaches, one generated binding must exist. It has the same subjects, and the
// explicit binding owns it. Its name depends only on these two, so bindings are never renamed. A generated binding is
// never a source.
//
// [RuleSet] holds the rules with their closure. [RuleSet.PlanSource] computes the actions for one explicit binding,
// [ScheduleActions] orders actions, and [RuleSet.StatusWithChildren] computes the status of a rule. [EvaluateNamespace] computes a whole namespace at
// once and is the reference for all of these.
package infer
