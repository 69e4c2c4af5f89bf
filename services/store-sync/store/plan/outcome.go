package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// StoreStatusWithOutcome returns the desired status of the Store with these fields, the outcome and the Events.
func StoreStatusWithOutcome(in Input, obs Observed, fields corev1alpha1.StoreStatus) moduleplan.ObjectStatus {
	s := moduleplan.ObjectStatus{Fields: fields, Same: isStatusUnchanged(in.Store, fields)}
	if s.Outcome, s.Message = outcomeOfConditions(fields.Conditions); in.isModelPending(obs) {
		s.Outcome, s.Message = eventv1.Outcome_OUTCOME_PENDING, "the model is being written"
	}
	s.Notes = storeEvents(in.Store.Status.Conditions, fields.Conditions)
	if obs.Written {
		s.Notes = append(s.Notes, condition.EventContent{Reason: "ModelWritten", Message: "model " + obs.Latest.GetId() + " was written and is live"})
	}
	return s
}

// isStatusUnchanged reports whether the status of a Store needs no write. See [canDeferObservedGeneration].
func isStatusUnchanged(o *corev1alpha1.Store, must corev1alpha1.StoreStatus) bool {
	has := OwnedStoreStatus(o.Status)
	if has.ModelDigest != "" && has.ModelDigest == must.ModelDigest && canDeferObservedGeneration(o, o.Status.Conditions) {
		has.Conditions, must.Conditions = withoutObservedGeneration(has.Conditions), withoutObservedGeneration(must.Conditions)
	}
	return equality.Semantic.DeepEqual(has, must)
}

// outcomeOfConditions returns the outcome to report for a Store with these conditions.
func outcomeOfConditions(conditions []metav1.Condition) (eventv1.Outcome, string) {
	if c := meta.FindStatusCondition(conditions, corev1alpha1.Deleting); c != nil {
		return eventv1.Outcome_OUTCOME_PENDING, c.Message
	}
	for _, kind := range []string{corev1alpha1.StoreSynced, corev1alpha1.ModelSynced} {
		c := meta.FindStatusCondition(conditions, kind)
		switch {
		case c == nil || c.Status == metav1.ConditionTrue:
		default:
			return eventv1.Outcome_OUTCOME_REJECTED, c.Message
		}
	}
	return eventv1.Outcome_OUTCOME_APPLIED, ""
}

// storeEvents returns the Events about the choice of the OpenFGA store and about a rejected core module or model.
func storeEvents(before, after []metav1.Condition) []condition.EventContent {
	var notes []condition.EventContent
	if c, ok := condition.FindChangedCondition(before, after, corev1alpha1.StoreSynced); ok {
		switch c.Reason {
		case ReasonCreated, ReasonAdopted, ReasonRecreated:
			notes = append(notes, condition.EventContent{Warning: c.Reason == ReasonRecreated, Reason: "Store" + c.Reason, Message: c.Message})
		case ReasonInvalidName, moduleplan.ReasonClaimed, ReasonNameTaken:
			notes = append(notes, condition.EventContent{Warning: true, Reason: "StoreRejected", Message: c.Message})
		}
	}
	if c, ok := condition.FindChangedCondition(before, after, corev1alpha1.ModelSynced); ok {
		switch c.Reason {
		case ReasonInvalidCore:
			notes = append(notes, condition.EventContent{Warning: true, Reason: "ModuleRejected", Message: c.Message})
		case ReasonLimitExceeded, ReasonModelRefused, ReasonNotAdopted:
			notes = append(notes, condition.EventContent{Warning: true, Reason: "ModelRejected", Message: c.Message})
		}
	}
	return notes
}
