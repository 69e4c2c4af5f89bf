package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/iam"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// DesiredStatus returns the desired status of a ProtectedResource, from the finding about it and from the state of the Store's
// model.
func DesiredStatus(p *iamv1alpha1.ProtectedResource, found iam.RegistrationFinding, verdict moduleplan.Verdict) moduleplan.ObjectStatus {
	types := []string{iamv1alpha1.Ready, iamv1alpha1.Registered}
	has := iamv1alpha1.ProtectedResourceStatus{
		ObservedGeneration: p.Status.ObservedGeneration, Registered: p.Status.Registered,
		Conditions: condition.MergeConditions(p.Status.Conditions, types, 0, metav1.Time{}),
	}
	ready := condition.New(iamv1alpha1.Ready, found.Reason == iamv1alpha1.IAMSystemConfigured, found.Reason, found.Message)
	if ready.IsTrue() && !verdict.Merged.IsTrue() {
		ready = verdict.Merged
		ready.Type = iamv1alpha1.Ready
	}
	set, record := []condition.Condition{ready}, has.Registered
	if verdict.Merged.IsTrue() { // Otherwise the last registration stays in force.
		set, record = append(set, registeredCondition(found)), found.Registration
	}
	s := iamv1alpha1.ProtectedResourceStatus{
		ObservedGeneration: p.Generation, Registered: record, Conditions: condition.MergeConditions(has.Conditions, types, p.Generation, verdict.Now, set...),
	}
	status := moduleplan.NewObjectStatus(has, s, s.Conditions, iamv1alpha1.Ready)
	if found.Reason == iamv1alpha1.IAMSystemConfigured {
		return status
	}
	status.Outcome = eventv1.Outcome_OUTCOME_REJECTED
	if c, ok := condition.FindChangedCondition(has.Conditions, s.Conditions, iamv1alpha1.Ready); ok {
		status.Notes = []condition.EventContent{{Warning: true, Reason: c.Reason, Message: c.Message}}
	}
	return status
}

// registeredCondition returns the condition Registered, which holds if the kind is registered for this object. The recorded
// registration is the basis of later decisions.
func registeredCondition(found iam.RegistrationFinding) condition.Condition {
	has := found.Registration != nil
	c := condition.New(iamv1alpha1.Registered, has, iamv1alpha1.InForce, "the kind belongs to this object; a later ProtectedResource cannot register it")
	switch {
	case !has:
		c.Reason, c.Message = found.Reason, found.Message
	case found.Cycle:
		c.Reason = iamv1alpha1.ParentCycle
	}
	return c
}
