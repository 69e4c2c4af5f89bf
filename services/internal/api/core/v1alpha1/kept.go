package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kept returns the condition that reports that an earlier text of the core module is live instead of the declared one,
// or nil. The condition states since when, and how to revoke what the edit removed.
func (in *Store) Kept() *metav1.Condition {
	if in.Status.Live == nil {
		return nil
	}
	return findFailingCondition(in.Status.Conditions, ModelSynced, InvalidCore)
}

// Kept returns the condition that reports that an earlier text of the module is live instead of the declared one, or
// nil.
func (in *AuthorizationModel) Kept() *metav1.Condition {
	return findFailingCondition(in.Status.Conditions, Merged, LastGoodLive)
}

func findFailingCondition(conditions []metav1.Condition, typ, reason string) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, typ)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason {
		return nil
	}
	return c
}
