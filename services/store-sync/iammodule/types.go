package iammodule

import (
	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// types makes the types of the model from ProtectedResources.
type types []*iamv1alpha1.ProtectedResource

// Live returns the types of all kinds in force.
func (t types) Live() []*openfgav1.TypeDefinition { return iam.InForce(t).Types() }

// Unchanged returns the types of the kinds whose registration has the current generation.
func (t types) Unchanged() []*openfgav1.TypeDefinition { return iam.Unchanged(t).Types() }

// Within returns the types that fit into the given room.
func (t types) Within(count, bytes int) []*openfgav1.TypeDefinition {
	return iam.Within(t, iam.Room{Types: count, Bytes: bytes}).Types()
}
