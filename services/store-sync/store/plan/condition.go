package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/condition"
)

// maxNamed bounds how many things one message names.
const maxNamed = 10

// known is a condition that an object has.
func known(c *metav1.Condition) condition.Condition {
	return condition.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// speaks reports whether a condition is about the object's present generation.
func speaks(o metav1.Object, conditions []metav1.Condition, typ string) bool {
	c := meta.FindStatusCondition(conditions, typ)
	return c != nil && c.ObservedGeneration == o.GetGeneration()
}

// undated are conditions but for the generation that they speak of.
func undated(conditions []metav1.Condition) []metav1.Condition {
	conditions = slices.Clone(conditions)
	for i := range conditions {
		conditions[i].ObservedGeneration = 0
	}
	return conditions
}

// enumerate names the first few of names.
func enumerate(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
