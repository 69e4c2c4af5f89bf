// Package explain shows how a policy decides: every path by which a subject can get an action on a resource, and the
// owner of each rule on it.
package explain
