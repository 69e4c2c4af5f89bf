package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

const (
	// maxMessage bounds the message of a condition, in bytes.
	maxMessage = 1024
	// maxNamed bounds how many things one message names.
	maxNamed = 10
)

// finding is one condition without its dates.
type finding struct {
	kind    string
	status  metav1.ConditionStatus
	reason  string
	message string
}

func (f finding) holds() bool { return f.status == metav1.ConditionTrue }

// board collects the conditions of one object that are ours to write.
type board struct {
	conditions []metav1.Condition
	generation int64
	now        metav1.Time
}

// newBoard starts from the conditions of the given types that the object has.
func newBoard(has []metav1.Condition, types []string, generation int64, now metav1.Time) *board {
	b := &board{generation: generation, now: now}
	for _, kind := range types {
		if c := meta.FindStatusCondition(has, kind); c != nil {
			b.conditions = append(b.conditions, *c)
		}
	}
	return b
}

func (b *board) set(f finding) {
	meta.SetStatusCondition(&b.conditions, metav1.Condition{
		Type: f.kind, Status: f.status, Reason: f.reason, Message: clip(f.message),
		ObservedGeneration: b.generation, LastTransitionTime: b.now,
	})
}

// sorted is what to write: one order, whatever order they were found in.
func (b *board) sorted() []metav1.Condition {
	slices.SortFunc(b.conditions, func(x, y metav1.Condition) int { return strings.Compare(x.Type, y.Type) })
	return b.conditions
}

// tuplesSynced is tuple-sync's condition on the present generation of an object. It counts only
// for the OpenFGA store in use: after a move the old one stands until the tuples have moved too.
// While they are being written nothing changes here: that would be a write for every change.
func tuplesSynced(has []metav1.Condition, o metav1.Object, moved bool) finding {
	c := meta.FindStatusCondition(has, corev1alpha1.TuplesSynced)
	if c == nil || c.ObservedGeneration != o.GetGeneration() || c.Reason == corev1alpha1.Syncing || moved {
		return finding{corev1alpha1.TuplesSynced, metav1.ConditionFalse, "TuplesPending", "waiting for tuple-sync to write the tuples"}
	}
	return finding{corev1alpha1.TuplesSynced, c.Status, c.Reason, c.Message}
}

// ready is true when all findings hold, and else names the first that does not.
func ready(findings ...finding) finding {
	for _, f := range findings {
		if !f.holds() {
			return finding{corev1alpha1.Ready, metav1.ConditionFalse, f.reason, f.kind + ": " + f.message}
		}
	}
	return finding{corev1alpha1.Ready, metav1.ConditionTrue, "Ready", "everything that this object asks for is live"}
}

// clip cuts a text to what a condition may hold, between characters.
func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	n := maxMessage - len("…")
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// enumerate names the first few of names.
func enumerate(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
