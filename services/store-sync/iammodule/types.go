package iammodule

import (
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/iam"
)

// types are those that follow from ProtectedResources.
type types []*iamv1alpha1.ProtectedResource

// Live are those of the kinds that are in force as they are.
func (t types) Live() []*openfgav1.TypeDefinition { return iam.InForce(t).Types() }

// Within are those that fit.
func (t types) Within(count, bytes int) []*openfgav1.TypeDefinition {
	return iam.Within(t, iam.Room{Types: count, Bytes: bytes}).Types()
}

// statement says of a ProtectedResource what the model depends on.
func statement(o resource) confirm.Statement {
	return confirm.NewStatement(o, func(p *iamv1alpha1.ProtectedResource) (declared, recorded any) {
		b := bare(p)
		return []any{b.ObjectMeta, b.Spec}, b.Status
	})
}

// bare is a ProtectedResource without what has no influence on the model, such as the dates of its status.
func bare(p *iamv1alpha1.ProtectedResource) *iamv1alpha1.ProtectedResource {
	b := &iamv1alpha1.ProtectedResource{Spec: p.Spec, ObjectMeta: metav1.ObjectMeta{
		Name: p.Name, Generation: p.Generation, CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
	}}
	if ready := meta.FindStatusCondition(p.Status.Conditions, iamv1alpha1.Ready); ready != nil {
		b.Status.Conditions = []metav1.Condition{{Type: ready.Type, Status: ready.Status, Reason: ready.Reason, ObservedGeneration: ready.ObservedGeneration}}
	}
	return b
}
