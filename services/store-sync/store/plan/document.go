package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	policies "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

// Document is one PolicyDocument, and what became of it in the policy of its Store.
type Document struct {
	event.Change
	Value *iaplv1alpha1.PolicyDocument
	policies.Validation
}

// Reasons of the condition Valid.
const (
	ReasonValid   = "Valid"
	ReasonInvalid = "Invalid"
)

// OwnDocumentStatus is the part of a PolicyDocument's status that store-sync writes: all of it.
func OwnDocumentStatus(s iaplv1alpha1.PolicyDocumentStatus) iaplv1alpha1.PolicyDocumentStatus {
	s.Conditions = condition.Apply(s.Conditions, documentConditions(), 0, metav1.Time{})
	return s
}

func documentConditions() []string {
	return []string{iaplv1alpha1.Valid, iaplv1alpha1.Merged, iaplv1alpha1.Ready}
}

// DocumentStatus is that status as it should be at the end of a pass.
func DocumentStatus(in Input, obs Observed, d Document) iaplv1alpha1.PolicyDocumentStatus {
	o := d.Value
	valid, merged := validCondition(d), documentMerged(in, obs, d)
	return iaplv1alpha1.PolicyDocumentStatus{
		Findings: d.Findings, AuthorizationModel: d.AuthorizationModel, ObservedGeneration: o.Generation,
		Conditions: condition.Apply(o.Status.Conditions, documentConditions(), o.Generation, in.Now, valid, merged, ready(valid, merged)),
	}
}

func validCondition(d Document) condition.Condition {
	if len(d.Findings) == 0 {
		return condition.New(iaplv1alpha1.Valid, true, ReasonValid, "it fits together with all other documents of the store")
	}
	message := fmt.Sprintf("%d errors, in status.findings", len(d.Findings))
	if first := d.Findings[0]; len(d.Findings) == 1 {
		message = fmt.Sprintf("%s: %s %s: %s", first.Path, first.Code, first.Message, first.Hint)
	}
	if d.AuthorizationModel != "" {
		message += "; what was valid before stays live"
	}
	return condition.New(iaplv1alpha1.Valid, false, ReasonInvalid, message)
}

// documentMerged is the condition of the module that a document was last made into.
func documentMerged(in Input, obs Observed, d Document) condition.Condition {
	no := func(reason, message string) condition.Condition {
		return condition.New(iaplv1alpha1.Merged, false, reason, message)
	}
	i := slices.IndexFunc(in.Modules, func(m Module) bool { return m.Key.Name == d.AuthorizationModel && m.Key.Cluster == in.Key.Cluster })
	switch {
	case i >= 0:
		return mergedCondition(in, obs, in.Modules[i])
	case in.Store == nil:
		return no(ReasonStoreNotFound, fmt.Sprintf("there is no Store %q in cluster %q: create it, or correct spec.storeRef", in.Key.Name, in.Key.Cluster))
	case in.deleting():
		return no(ReasonStoreDeleting, fmt.Sprintf("Store %q is being deleted: point spec.storeRef elsewhere, or delete this object", in.Key.Name))
	}
	return no(ReasonInvalid, "nothing of the document was ever valid, so it is no part of the model")
}

// DocumentOutcome is what to tell the bus of a PolicyDocument with these conditions.
func DocumentOutcome(conditions []metav1.Condition) (eventv1.Outcome, string) {
	for _, kind := range []string{iaplv1alpha1.Valid, iaplv1alpha1.Merged} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			if c.Reason == ReasonInvalid || c.Reason == ReasonRejected {
				return eventv1.Outcome_OUTCOME_REJECTED, c.Message
			}
			return eventv1.Outcome_OUTCOME_PENDING, c.Message
		}
	}
	return eventv1.Outcome_OUTCOME_APPLIED, ""
}

// DocumentNotes tells people that their document was refused.
func DocumentNotes(before, after []metav1.Condition) []condition.Note {
	if c, ok := condition.Changed(before, after, iaplv1alpha1.Valid); ok && c.Reason == ReasonInvalid {
		return []condition.Note{{Warning: true, Reason: "PolicyRejected", Message: c.Message}}
	}
	return nil
}
