package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
)

// maxNamed bounds how many things one message names.
const maxNamed = 10

// tuplesSynced is tuple-sync's condition on the present generation of an object. It counts only
// for the OpenFGA store in use: after a move the old one stands until the tuples have moved too.
// While they are being written nothing changes here: that would be a write for every change.
func tuplesSynced(has []metav1.Condition, o metav1.Object, moved bool) condition.Condition {
	c := meta.FindStatusCondition(has, corev1alpha1.TuplesSynced)
	if c == nil || c.ObservedGeneration != o.GetGeneration() || c.Reason == corev1alpha1.Syncing || moved {
		return condition.New(corev1alpha1.TuplesSynced, false, "TuplesPending", "waiting for tuple-sync to write the tuples")
	}
	return known(c)
}

// known is a condition that an object has.
func known(c *metav1.Condition) condition.Condition {
	return condition.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// enumerate names the first few of names.
func enumerate(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
