// Package policy is the authorization policy language: who may act on what, stated by
// each service for its own resources in YAML documents that together form one policy.
//
// The way of a policy is one of pure functions:
//
//	bytes --load--> []*Document --check--> *Policy --spicedb, openfga--> a schema, a model
//
// A [Document] is what somebody wrote, each name with its place. A [Policy] is what all
// documents mean together: valid, expanded, sorted. No order of files, documents or list
// items is visible in it. What stands in the way is told by [Diagnostics], all of it at once.
//
// This package has the types; the steps are packages of their own below it.
package policy
