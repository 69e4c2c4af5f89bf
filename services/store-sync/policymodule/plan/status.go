package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Reasons of conditions.
const (
	// ReasonValid is the reason of the condition Valid if it holds.
	ReasonValid = "Valid"
	// reasonPending is the reason of the condition Merged of a valid document while its AuthorizationModel is not made
	// yet.
	reasonPending = "Pending"
)

// DesiredStatus returns the desired status of a PolicyDocument, from its validation and from the state of its module in the
// Store. Store-sync owns all of that status.
func DesiredStatus(d *iaplv1alpha1.PolicyDocument, v DocumentValidation, verdict moduleplan.Verdict) moduleplan.ObjectStatus {
	types := []string{iaplv1alpha1.Valid, iaplv1alpha1.Merged, iaplv1alpha1.Ready}
	valid, merged := validCondition(v), verdict.Merged
	switch {
	case merged.Type != "":
	case len(v.Findings) == 0:
		merged = condition.New(iaplv1alpha1.Merged, false, reasonPending, "store-sync has not created its AuthorizationModel yet")
	default:
		merged = condition.New(iaplv1alpha1.Merged, false, moduleplan.ReasonInvalid,
			"nothing of the document is valid, so it is not part of the model")
	}
	has := d.Status
	has.Conditions = condition.MergeConditions(has.Conditions, types, 0, metav1.Time{})
	s := iaplv1alpha1.PolicyDocumentStatus{
		Findings: v.Findings, AuthorizationModel: v.AuthorizationModel, ObservedGeneration: d.Generation,
		Conditions: condition.MergeConditions(has.Conditions, types, d.Generation, verdict.Now, valid, merged, moduleplan.ReadyCondition(valid, merged)),
	}
	status := moduleplan.NewObjectStatus(has, s, s.Conditions, iaplv1alpha1.Valid, iaplv1alpha1.Merged)
	if c, ok := condition.FindChangedCondition(has.Conditions, s.Conditions, iaplv1alpha1.Valid); ok && c.Reason == moduleplan.ReasonInvalid {
		status.Notes = []condition.EventContent{{Warning: true, Reason: "PolicyRejected", Message: c.Message}}
	}
	return status
}

func validCondition(v DocumentValidation) condition.Condition {
	if len(v.Findings) == 0 {
		return condition.New(iaplv1alpha1.Valid, true, ReasonValid, "it fits together with all other documents of the store")
	}
	message := fmt.Sprintf("%d errors, in status.findings", v.Errors)
	if listed := min(v.Errors, MaxFindings); listed < v.Errors {
		message = fmt.Sprintf("%d errors, the first %d in status.findings", v.Errors, listed)
	}
	f := v.Findings[0]
	first := strings.TrimPrefix(fmt.Sprintf("%s: %s %s: %s", f.Path, f.Code, f.Message, f.Hint), ": ")
	if message += "; the first is " + first; len(v.Findings) == 1 {
		message = first
	}
	if v.AuthorizationModel != "" {
		message += "; the last valid version stays in force as far as it still holds"
	}
	return condition.New(iaplv1alpha1.Valid, false, moduleplan.ReasonInvalid, message)
}
