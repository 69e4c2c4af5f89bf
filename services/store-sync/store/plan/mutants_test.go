package plan_test

import (
	"maps"
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

// services is the directory of all services.
const services = "../../.."

// mutantsOfOrder returns bugs in the decision which object owns a definition. The random histories must find each.
func mutantsOfOrder() map[string]mutant.Mutant {
	return map[string]mutant.Mutant{
		"a live definition is no better claim":       {"internal/precedence/precedence.go", "cmp.Compare(a.Live, b.Live), ", ""},
		"discovered modules rank first":              {"internal/precedence/precedence.go", "compareTrueFirst(b.Served, a.Served)", "compareTrueFirst(a.Served, b.Served)"},
		"the younger object ranks first":             {"internal/precedence/precedence.go", "a.Created.Compare(b.Created)", "b.Created.Compare(a.Created)"},
		"discovered modules are not recorded":        {"store-sync/store/plan/live.go", "cmp.Or(live.Discovered[i].Model, m.DSL)", `cmp.Or("")`},
		"an unreadable text ends the live one":       {"store-sync/model/live.go", "if u.live == nil || u.settled", "if u.live == nil || u.broken != \"\" || u.settled"},
		"a rejected edit removes nothing":            {"store-sync/model/live.go", "if u.settled || u.moduleOfPart().claims == nil {", "if u != nil {"},
		"a document without types has no live text":  {"store-sync/policymodule/plan/module.go", "if live == nil {", "if live == nil || len(live.ResourceTypes) == 0 {"},
		"a document made again inherits a live text": {"store-sync/policymodule/plan/plan.go", `made != "" && made != d.UID`, `made == "-"`},
		"a removal from a document waits for others": {"store-sync/policymodule/plan/trial.go", "s.cutInvalidElements(s.textsWithRemovals(changes), nil)", "s.cutInvalidElements(s.startingTexts(nil), nil)"},
		"a document may break others":                {"store-sync/policymodule/plan/trial.go", "if !includesAllElements(", "if false && !includesAllElements("},
	}
}

// mutantsOfRecords returns bugs in records and statuses. Tests of one package each must find them.
func mutantsOfRecords() map[string]mutant.Mutant {
	return map[string]mutant.Mutant{
		"age decides who has an OpenFGA store":        {"store-sync/store/plan/input.go", "ours != theirs {", "ours != theirs && false {"},
		"a union of targets takes more than it lacks": {"store-sync/policymodule/plan/remainder.go", "union := unions[target.Name]; union &&", "union := unions[target.Name]; false && union &&"},
		"a twin takes a type from parts of the other": {"store-sync/model/resolve.go", "!g.isPartLive(u.host, in)", "!in[u.host.index]"},
		"a record is given up without its store":      {"tuple-sync/declared/plan/owner.go", "o.TargetStoreID == \"\" && !o.RecordedElsewhere", "false"},
		"a restored tuple counts as others'":          {"tuple-sync/declared/plan/removals.go", "there && !claimed && !written.After(r.Written)", "there && !claimed && written.After(r.Written)"},
		"a document without a module is never merged": {"store-sync/store/plan/module.go", "condition.New(corev1alpha1.Merged, true, reasonNothingToMerge", "condition.New(corev1alpha1.Merged, false, reasonNothingToMerge"},
	}
}

func TestMutantsMatchCode(t *testing.T) {
	all := mutantsOfOrder()
	maps.Copy(all, mutantsOfRecords())
	mutant.CheckMutantsApply(t, services, all)
}
