// Package spicedb compiles a policy to a SpiceDB schema.
//
// Each type becomes a definition, and each relation a relation. An action becomes a permission. If a role binding can
// give it, it also gets a relation for its role bindings:
//
//	relation parent: infratographer/tenant
//
//	relation loadbalancer_get_role: infratographer/role#subject
//
//	permission loadbalancer_get = loadbalancer_get_role + parent->loadbalancer_get
//
// The output is sorted, so that a policy always gives the same schema. [CheckSchema] rejects policies that SpiceDB would
// reject.
package spicedb
