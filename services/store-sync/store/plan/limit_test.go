package plan_test

import (
	"testing"

	"github.com/entail-dev/entail/services/store-sync/model"
)

func TestLimitErrorIsReportedPerModule(t *testing.T) {
	w := newSimulatedStore(withModules(dsl("folder")), inStep)
	good := w.store.Status.AuthorizationModelID
	w.limits = model.Limits{Types: 3} // As many as exist.
	w.modules = append(w.modules, module("straw", dsl("group")), module("wrong", "module wrong\n\ntype x\n  relations\n    define r: [nobody]\n"))
	w.pass(1000)
	w.expectConditions(t, "ModelSynced=True/ModulesRejected", "m00:Merged=True/Merged", "straw:Merged=False/LimitExceeded", "wrong:Merged=False/Rejected")
	if got := w.store.Status.AuthorizationModelID; got != good {
		t.Errorf("the status names model %s, want %s", got, good)
	}
	w.modules = w.modules[:1]
	w.pass(1000)
	w.expectConditions(t, "ModelSynced=True/Merged", "m00:Merged=True/Merged")
}
