package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and version of the kind in this package.
//
//nolint:gochecknoglobals // A schema.GroupVersion cannot be a constant.
var GroupVersion = schema.GroupVersion{Group: "role.k8s.com", Version: "v1alpha1"}

// Resource is the resource of the kind in this package.
const Resource = "impliedroles"

// Kinds of roles.
const (
	// Role is a role of the rule's own namespace. It is the default kind.
	Role = "Role"
	// ClusterRole is a ClusterRole that a RoleBinding grants in its own namespace.
	ClusterRole = "ClusterRole"
)

// Condition types.
const (
	// Accepted reports whether the rule takes effect.
	Accepted = "Accepted"
	// Acyclic is False for every rule of a cycle, in which the roles imply each other.
	Acyclic = "Acyclic"
	// ChildRoleFound is False while the child role does not exist. The role is bound even then.
	ChildRoleFound = "ChildRoleFound"
	// Judged is False if the rule was written while admission did not check the authors of rules.
	Judged = "Judged"
	// Synced reports whether all RoleBindings that follow from the rule exist.
	Synced = "Synced"
	// Ready is the summary: the rule takes effect and is synced.
	Ready = "Ready"
)
