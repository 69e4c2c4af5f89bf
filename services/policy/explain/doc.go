// Package explain shows how a policy decides: every way by which somebody can come to an action
// on a resource, and who wrote the rule that opens it.
package explain
