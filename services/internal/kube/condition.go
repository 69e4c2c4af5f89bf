package kube

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetCondition is conditions with c in the place of the one of its type. The time
// of transition moves only when the status does; the given slice stays as it is.
func SetCondition(conditions []metav1.Condition, c metav1.Condition) []metav1.Condition {
	out := slices.Clone(conditions)
	meta.SetStatusCondition(&out, c)
	return out
}
