package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

func TestStatusCountsUnlistedErrors(t *testing.T) {
	d := plan.Document{Name: "team/a", Present: read(t, "actions:\n"+strings.Repeat("- {name: UP}\n", 151))}
	v := plan.DecideDocuments(plan.Input{Documents: []plan.Document{d}}).Validations["team/a"]
	if last := v.Findings[len(v.Findings)-1]; v.Errors != 301 || len(v.Findings) != 101 || last.Message != "and 201 more" {
		t.Errorf("%d errors, %d listed, the last is %v", v.Errors, len(v.Findings), last)
	}
	status := plan.DesiredStatus(new(iaplv1alpha1.PolicyDocument), v, moduleplan.Verdict{})
	if text, err := json.Marshal(status.Fields); err != nil || !strings.Contains(string(text), "301 errors, the first 100 in status.findings; the first is spec.actions[0].name: E-") {
		t.Errorf("the status is %.1500s (%v)", text, err)
	}
}

func TestStatusDoesNotNameFieldForFindingAboutWholeDocument(t *testing.T) {
	v := plan.DocumentValidation{Errors: 1, Findings: []iaplv1alpha1.Finding{{Code: "E-OPTION", Message: "no roles", Hint: "annotate the Store"}}}
	status := plan.DesiredStatus(new(iaplv1alpha1.PolicyDocument), v, moduleplan.Verdict{})
	if text, err := json.Marshal(status.Fields); err != nil || !strings.Contains(string(text), `"message":"E-OPTION no roles: annotate the Store"`) {
		t.Errorf("the status is %s (%v)", text, err)
	}
}

func TestStatusOfValidDocumentWaitsForItsModule(t *testing.T) {
	status := plan.DesiredStatus(new(iaplv1alpha1.PolicyDocument), plan.DocumentValidation{}, moduleplan.Verdict{})
	if text, err := json.Marshal(status.Fields); err != nil || !strings.Contains(string(text), `"reason":"Pending"`) || status.Outcome != eventv1.Outcome_OUTCOME_PENDING {
		t.Errorf("the status is %s (%v), outcome %s", text, err, status.Outcome)
	}
}
