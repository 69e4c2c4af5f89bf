package plan

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/store-sync/model"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

func TestDesiredStatusIsReadyWhenLive(t *testing.T) {
	fine := iam.RegistrationFinding{Reason: iamv1alpha1.IAMSystemConfigured, Message: "fine"}
	live := moduleplan.Verdict{Merged: condition.New("Merged", true, "Merged", "live")}
	tests := map[string]struct {
		found   iam.RegistrationFinding
		verdict moduleplan.Verdict
		want    string
		outcome eventv1.Outcome
		notes   int
	}{
		"live":           {fine, live, "True/IAMSystemConfigured fine", eventv1.Outcome_OUTCOME_APPLIED, 0},
		"not live yet":   {fine, moduleplan.Verdict{Merged: condition.New("Merged", false, "NoStore", "none")}, "False/NoStore none", eventv1.Outcome_OUTCOME_PENDING, 0},
		"bad, and live":  {iam.RegistrationFinding{Reason: iamv1alpha1.ParentCycle, Message: "round"}, live, "False/ParentCycle round", eventv1.Outcome_OUTCOME_REJECTED, 1},
		"bad, not live":  {iam.RegistrationFinding{Reason: iamv1alpha1.InvalidName, Message: "no"}, moduleplan.Verdict{Merged: condition.New("Merged", false, "NoStore", "none")}, "False/InvalidName no", eventv1.Outcome_OUTCOME_REJECTED, 1},
		"without a room": {iam.RegistrationFinding{Reason: iamv1alpha1.LimitExceeded, Message: "full"}, live, "False/LimitExceeded full", eventv1.Outcome_OUTCOME_REJECTED, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			observed := metav1.Condition{Type: iamv1alpha1.Observed, Status: metav1.ConditionTrue}
			p.Status.Conditions = []metav1.Condition{observed, {Type: iamv1alpha1.Ready, Status: metav1.ConditionUnknown, Reason: iamv1alpha1.Unknown}}
			registered := 0
			if test.verdict.Merged.IsTrue() {
				registered = 1
			}
			got := DesiredStatus(p, test.found, test.verdict)
			fields, _ := got.Fields.(iamv1alpha1.ProtectedResourceStatus)
			if len(fields.Conditions) != 1+registered || fields.ObservedGeneration != 3 || fields.Conditions[0].ObservedGeneration != 3 {
				t.Fatalf("the status is %+v", fields)
			}
			c := fields.Conditions[0] // Ready comes before Registered.
			if is := string(c.Status) + "/" + c.Reason + " " + c.Message; is != test.want || c.Type != iamv1alpha1.Ready {
				t.Errorf("it is %s, want %s", is, test.want)
			}
			if got.Outcome != test.outcome || len(got.Notes) != test.notes || got.Same {
				t.Errorf("reported is %+v", got)
			}
			p.Status.ObservedGeneration, p.Status.Conditions = fields.ObservedGeneration, slices.Concat(fields.Conditions, []metav1.Condition{observed})
			if again := DesiredStatus(p, test.found, test.verdict); !again.Same || len(again.Notes) > 0 {
				t.Errorf("when written it is %+v", again)
			}
		})
	}
}

// The record holds the claim with which the live model was made. It stays as long as no newer model is live.
func TestDesiredStatusRecordsLiveRegistration(t *testing.T) {
	was, is := &iamv1alpha1.Registration{Kind: "Was"}, &iamv1alpha1.Registration{Kind: "Is"}
	fine := iam.RegistrationFinding{Reason: iamv1alpha1.IAMSystemConfigured, Registration: is}
	for name, test := range map[string]struct {
		found  iam.RegistrationFinding
		merged bool
		want   *iamv1alpha1.Registration
	}{
		"live": {fine, true, is}, "not live yet": {fine, false, was}, "nothing": {iam.RegistrationFinding{Reason: iamv1alpha1.AlreadyRegistered}, true, nil},
	} {
		p := &iamv1alpha1.ProtectedResource{Status: iamv1alpha1.ProtectedResourceStatus{Registered: was}}
		status := DesiredStatus(p, test.found, moduleplan.Verdict{Merged: condition.New("Merged", test.merged, "Because", "of this")})
		if fields, _ := status.Fields.(iamv1alpha1.ProtectedResourceStatus); fields.Registered != test.want {
			t.Errorf("%s: recorded is %+v", name, fields.Registered)
		}
	}
}

func TestIAMStoreSpecHasOwnModel(t *testing.T) {
	spec := IAMStoreSpec("iam", "uid")
	if result, err := model.Merge(model.Module{DSL: spec.CoreModule}, nil, model.Limits{}); err != nil || result.Reports[0].State != model.Merged {
		t.Errorf("its core module is %+v (%v)", result.Reports, err)
	}
}
