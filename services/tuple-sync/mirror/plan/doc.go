// Package plan decides what the statuses of Roles, PolicyBindings and GroupMemberships say. It does no I/O.
package plan
