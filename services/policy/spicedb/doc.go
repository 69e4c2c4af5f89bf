// Package spicedb compiles a policy to a SpiceDB schema.
//
// Each type is a definition, each relation a relation. An action is a permission, and a relation
// for its role bindings where it can be given by one:
//
//	relation parent: infratographer/tenant
//
//	relation loadbalancer_get_role: infratographer/role#subject
//
//	permission loadbalancer_get = loadbalancer_get_role + parent->loadbalancer_get
//
// Everything is sorted, so that one policy is one schema. [Check] refuses what SpiceDB would.
package spicedb
