package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and version of the kinds in this package.
//
//nolint:gochecknoglobals // A schema.GroupVersion cannot be a constant.
var GroupVersion = schema.GroupVersion{Group: "resourcemanager.miloapis.com", Version: "v1alpha1"}

// Resources of the kinds in this package.
const (
	Organizations = "organizations"
	Projects      = "projects"
)

// Kinds in this package.
const (
	OrganizationKind = "Organization"
	ProjectKind      = "Project"
)

// HierarchyFinalizer is a finalizer that other software sets on Projects. Entail does not need it and removes it.
const HierarchyFinalizer = "resourceownerhierarchy.iam.miloapis.com/finalizer"
