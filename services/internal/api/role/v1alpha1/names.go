package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion of the kind in this package.
//
//nolint:gochecknoglobals // A schema.GroupVersion cannot be a constant.
var GroupVersion = schema.GroupVersion{Group: "role.k8s.com", Version: "v1alpha1"}

// Resource of the kind in this package.
const Resource = "impliedroles"

// Kinds of roles.
const (
	// Role is a role of the rule's own namespace; also what an empty kind means.
	Role = "Role"
	// ClusterRole is one that a RoleBinding grants in its namespace only.
	ClusterRole = "ClusterRole"
)

// Condition types.
const (
	// Accepted says that the rule counts.
	Accepted = "Accepted"
	// Acyclic is False for every rule of a cycle: its roles imply each other.
	Acyclic = "Acyclic"
	// ChildRoleFound is False while the child role does not exist: it is granted all the same.
	ChildRoleFound = "ChildRoleFound"
	// Judged is False if the rule was written while nobody judged who writes rules.
	Judged = "Judged"
	// Synced says that every RoleBinding that follows from the rule is there.
	Synced = "Synced"
	// Ready says both that the rule counts and that it is synced, for who asks for one word.
	Ready = "Ready"
)
