// Package condition builds the conditions of a service in the status of an object. It sorts them by type, bounds their
// messages, and changes lastTransitionTime only with the status. It also finds the conditions that changed, for
// Events. It writes nothing.
package condition

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/truncate"
)

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 1024

// Condition is a condition without times and generation.
type Condition struct {
	Type            string
	Status          metav1.ConditionStatus
	Reason, Message string
}

// New returns a condition with the status True or False.
func New(typ string, holds bool, reason, message string) Condition {
	c := Condition{Type: typ, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if holds {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// IsTrue reports whether the status is True.
func (c Condition) IsTrue() bool { return c.Status == metav1.ConditionTrue }

// MergeConditions returns the conditions of the given types, to be written for generation. It starts from has and
// replaces the conditions in set. lastTransitionTime changes only with the status.
func MergeConditions(existing []metav1.Condition, types []string, generation int64, now metav1.Time, set ...Condition) []metav1.Condition {
	var ours []metav1.Condition
	for _, c := range existing {
		if slices.Contains(types, c.Type) {
			ours = append(ours, c)
		}
	}
	for _, c := range set {
		meta.SetStatusCondition(&ours, metav1.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: truncate.Text(c.Message, maxMessage),
			ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	slices.SortFunc(ours, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return ours
}

// SortByType sorts conditions by the order of their types.
func SortByType(conditions []metav1.Condition, types []string) []metav1.Condition {
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int { return slices.Index(types, a.Type) - slices.Index(types, b.Type) })
	return conditions
}

// FindChangedCondition returns the condition of a type if its status, reason or message changed. Callers record an
// Event only then, so that repeated reconciliations do not repeat an Event.
func FindChangedCondition(before, after []metav1.Condition, typ string) (metav1.Condition, bool) {
	was, is := meta.FindStatusCondition(before, typ), meta.FindStatusCondition(after, typ)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
		return metav1.Condition{}, false
	}
	return *is, true
}

// EventContent is the content of a Kubernetes Event: a reason, which is one word for programs, and a sentence for
// users.
type EventContent struct {
	Warning         bool
	Reason, Message string
}
