package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion of the kind in this package.
//
//nolint:gochecknoglobals // A schema.GroupVersion cannot be a constant.
var GroupVersion = schema.GroupVersion{Group: "iapl.infratographer.com", Version: "v1alpha1"}

// Resource of the kind in this package.
const Resource = "policydocuments"

// RolesAnnotation on a Store says where its model keeps roles and who has them, such as
// "role#assignee"; without it that is "role#subject".
const RolesAnnotation = "iapl.infratographer.com/roles"

// Condition types.
const (
	// Ready says that the document is valid and its module is part of the store's live model.
	Ready = "Ready"
	// Valid says that the document fits together with all others of its store.
	Valid = "Valid"
	// Merged says that the module of the document is part of the store's live model.
	Merged = "Merged"
)
