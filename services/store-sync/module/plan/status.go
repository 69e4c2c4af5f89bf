package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// Reasons of conditions that mean that the object itself is at fault.
const (
	ReasonInvalid  = "Invalid"
	ReasonRejected = "Rejected"
)

// Ready is true when all conditions hold, and else names the first that does not.
func Ready(all ...condition.Condition) condition.Condition {
	for _, c := range all {
		if !c.Holds() {
			return condition.New(corev1alpha1.Ready, false, c.Reason, c.Type+": "+c.Message)
		}
	}
	return condition.New(corev1alpha1.Ready, true, "Ready", "everything that this object asks for is live")
}

// Verdict is what became of a module in its Store.
type Verdict struct {
	// Merged is the condition; it has no type when nothing carries the module.
	Merged condition.Condition
	// StoreID is the OpenFGA store, and ModelID its model; "" while there is none.
	StoreID, ModelID string
	// Live is what the AuthorizationModel's status must say is live of it.
	Live *corev1alpha1.LiveModel
	// Room is what the types of ProtectedResources have to fit into.
	Room model.Limits
	// Now dates conditions that change.
	Now metav1.Time
}

// Status is what the status of an object must say of its module.
type Status struct {
	// Fields are our part of it; Same means that the object has them.
	Fields any
	Same   bool
	// Outcome and Message are what to report.
	Outcome eventv1.Outcome
	Message string
	// Notes are the Events that the change is worth.
	Notes []condition.Note
}

// NewStatus compares our part of a status with what it must be. It reports the first condition of
// the given types that does not hold: only what is wrong with the object itself rejects it, else it waits.
func NewStatus(has, fields any, conditions []metav1.Condition, types ...string) Status {
	s := Status{Fields: fields, Same: equality.Semantic.DeepEqual(has, fields), Outcome: eventv1.Outcome_OUTCOME_APPLIED}
	for _, typ := range types {
		c := meta.FindStatusCondition(conditions, typ)
		if c == nil || c.Status == metav1.ConditionTrue {
			continue
		}
		s.Outcome, s.Message = eventv1.Outcome_OUTCOME_PENDING, c.Message
		if c.Reason == ReasonInvalid || c.Reason == ReasonRejected || c.Reason == corev1alpha1.LastGoodLive {
			s.Outcome = eventv1.Outcome_OUTCOME_REJECTED
		}
		break
	}
	return s
}
