package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

func TestTheStatusCountsErrorsThatItDoesNotList(t *testing.T) {
	d := plan.Document{Name: "team/a", Present: read(t, "actions:\n"+strings.Repeat("- {name: UP}\n", 151))}
	v := plan.Make(plan.Input{Documents: []plan.Document{d}}).Validations["team/a"]
	if last := v.Findings[len(v.Findings)-1]; v.Errors != 301 || len(v.Findings) != 101 || last.Message != "and 201 more" {
		t.Errorf("%d errors, %d listed, the last is %v", v.Errors, len(v.Findings), last)
	}
	status := plan.Status(new(iaplv1alpha1.PolicyDocument), v, moduleplan.Verdict{})
	if text, err := json.Marshal(status.Fields); err != nil || !strings.Contains(string(text), "301 errors, the first 100 in status.findings") {
		t.Errorf("the status is %.1500s (%v)", text, err)
	}
}
