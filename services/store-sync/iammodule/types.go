package iammodule

import (
	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// types are those that follow from ProtectedResources.
type types []*iamv1alpha1.ProtectedResource

// Live are those of the kinds that are in force.
func (t types) Live() []*openfgav1.TypeDefinition { return iam.InForce(t).Types() }

// Unchanged are those of the kinds that are in force as they are.
func (t types) Unchanged() []*openfgav1.TypeDefinition { return iam.Unchanged(t).Types() }

// Within are those that fit.
func (t types) Within(count, bytes int) []*openfgav1.TypeDefinition {
	return iam.Within(t, iam.Room{Types: count, Bytes: bytes}).Types()
}
