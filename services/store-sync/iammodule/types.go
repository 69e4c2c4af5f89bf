package iammodule

import (
	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// iamTypesBuilder makes the types of the model from ProtectedResources.
type iamTypesBuilder []*iamv1alpha1.ProtectedResource

// LiveTypes returns the types of all kinds in force.
func (t iamTypesBuilder) LiveTypes() []*openfgav1.TypeDefinition {
	return iam.RecordedRegistry(t).TypeDefinitions()
}

// UnchangedTypes returns the types of the kinds whose registration has the current generation.
func (t iamTypesBuilder) UnchangedTypes() []*openfgav1.TypeDefinition {
	return iam.UnchangedRegistry(t).TypeDefinitions()
}

// TypesWithin returns the types that fit into the given room.
func (t iamTypesBuilder) TypesWithin(count, bytes int) []*openfgav1.TypeDefinition {
	return iam.RegistryWithinBudget(t, iam.ModelBudget{Types: count, Bytes: bytes}).TypeDefinitions()
}
