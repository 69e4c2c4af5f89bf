package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and version of the kind in this package.
//
//nolint:gochecknoglobals // A schema.GroupVersion cannot be a constant.
var GroupVersion = schema.GroupVersion{Group: "iapl.infratographer.com", Version: "v1alpha1"}

// Resource is the resource of the kind in this package.
const Resource = "policydocuments"

// RolesAnnotation on a Store names the relation that holds the members of a role, such as "role#assignee". The default
// is "role#subject".
const RolesAnnotation = "iapl.infratographer.com/roles"

// Condition types.
const (
	// Ready reports whether the document is valid and its module is part of the store's live model.
	Ready = "Ready"
	// Valid reports whether the document is valid together with all other documents of its store.
	Valid = "Valid"
	// Merged reports whether the module of the document is part of the store's live model.
	Merged = "Merged"
)
