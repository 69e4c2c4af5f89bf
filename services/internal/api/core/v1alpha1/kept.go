package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kept says since when an earlier text of the Store's core module is live in the place of its own, and how to revoke what an
// edit took out of it; nil if none is.
func (in *Store) Kept() *metav1.Condition {
	if in.Status.Live == nil {
		return nil
	}
	return failing(in.Status.Conditions, ModelSynced, InvalidCore)
}

// Kept says the same of the module.
func (in *AuthorizationModel) Kept() *metav1.Condition {
	return failing(in.Status.Conditions, Merged, LastGoodLive)
}

func failing(conditions []metav1.Condition, typ, reason string) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, typ)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason {
		return nil
	}
	return c
}
