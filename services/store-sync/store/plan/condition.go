package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
)

// maxNamed bounds the names in one message.
const maxNamed = 10

// withoutDates converts a condition that an object has.
func withoutDates(c *metav1.Condition) condition.Condition {
	return condition.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// coversCurrentGeneration reports whether a condition covers the object's current generation.
func coversCurrentGeneration(o metav1.Object, conditions []metav1.Condition, typ string) bool {
	c := meta.FindStatusCondition(conditions, typ)
	return c != nil && c.ObservedGeneration == o.GetGeneration()
}

// canDeferObservedGeneration reports whether store-sync leaves the observedGeneration of its conditions as it is for now. An edit of
// tuples alone changes nothing else that the conditions say. tuple-sync writes to the same object meanwhile, so
// store-sync waits until tuple-sync is done: two writers at once would cost conflicts and retries.
func canDeferObservedGeneration(o metav1.Object, conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, corev1alpha1.TuplesSynced)
	return c == nil || c.ObservedGeneration != o.GetGeneration() || c.Reason == corev1alpha1.Syncing
}

// withoutObservedGeneration returns the conditions without their observedGeneration.
func withoutObservedGeneration(conditions []metav1.Condition) []metav1.Condition {
	conditions = slices.Clone(conditions)
	for i := range conditions {
		conditions[i].ObservedGeneration = 0
	}
	return conditions
}

// enumerateNames returns at most maxNamed of the names, and the number of the others.
func enumerateNames(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
