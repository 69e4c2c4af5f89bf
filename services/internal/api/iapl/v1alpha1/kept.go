package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kept returns the condition that reports that an earlier text of the document is live instead of the declared one, or
// nil.
func (in *PolicyDocument) Kept() *metav1.Condition {
	c := meta.FindStatusCondition(in.Status.Conditions, Valid)
	if c == nil || c.Status != metav1.ConditionFalse || in.Status.AuthorizationModel == "" {
		return nil
	}
	return c
}
