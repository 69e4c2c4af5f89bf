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

// These reasons mean that the object itself is at fault.
const (
	ReasonInvalid  = "Invalid"
	ReasonRejected = "Rejected"
)

// ReadyCondition returns a condition that holds if all others hold. Otherwise it names the first that does not.
func ReadyCondition(all ...condition.Condition) condition.Condition {
	for _, c := range all {
		if !c.IsTrue() {
			return condition.New(corev1alpha1.Ready, false, c.Reason, c.Type+": "+c.Message)
		}
	}
	return condition.New(corev1alpha1.Ready, true, "Ready", "everything that this object declares is in force")
}

// Verdict holds the state of a module in its Store.
type Verdict struct {
	// Merged is the condition. It has no type if no AuthorizationModel carries the module.
	Merged condition.Condition
	// StoreID is the OpenFGA store and ModelID its model. They are "" before these exist.
	StoreID, ModelID string
	// Live is the live text that the AuthorizationModel's status must record.
	Live *corev1alpha1.LiveModel
	// Room is the space in the model for the types of ProtectedResources.
	Room model.Limits
	// Now is the transition time of conditions that change.
	Now metav1.Time
}

// ObjectStatus holds the desired status of an object for its module.
type ObjectStatus struct {
	// Fields are the fields of the status that this service owns. Same means that the object already has them.
	Fields any
	Same   bool
	// Outcome and Message are the result to report.
	Outcome eventv1.Outcome
	Message string
	// Notes are the Events to publish for the change.
	Notes []condition.EventContent
}

// NewObjectStatus compares the owned fields of a status with the desired ones. It reports the first condition of the given
// types that does not hold. The outcome is rejected only if the object itself is at fault, else pending.
func NewObjectStatus(has, fields any, conditions []metav1.Condition, types ...string) ObjectStatus {
	s := ObjectStatus{Fields: fields, Same: equality.Semantic.DeepEqual(has, fields), Outcome: eventv1.Outcome_OUTCOME_APPLIED}
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
