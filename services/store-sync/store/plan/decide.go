package plan

import (
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	policyplan "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

// DecideModel computes the model of a live Store from its objects and their statuses. It compiles the documents beside the
// other modules, applies that plan to the input, and merges everything. The returned input holds the
// model in Merged, for Verdict and StoreStatus. The plan holds the validations of documents.
func DecideModel(in Input, documents []policyplan.Document, limits model.Limits) (Input, policyplan.Plan) {
	in.mergeModules(limits)
	policies := policyplan.Input{
		Store: corev1alpha1.StoreRef{Name: in.Key.Name}, Roles: in.Store.Annotations[iaplv1alpha1.RolesAnnotation], Documents: documents,
	}
	for _, m := range in.Modules {
		if m.documentName() != "" && m.Key.Cluster == in.Key.Cluster {
			policies.Has = append(policies.Has, m.Value)
		}
	}
	policies.SetOtherModules(in.Merged, limits)
	after := func(todo moduleplan.Plan) Input {
		is := in.AfterPlan(todo, in.Now)
		is.mergeModules(limits)
		return is
	}
	todo := policyplan.DecideUntilStable(policies, policyplan.DecideDocuments, func(todo moduleplan.Plan) (model.MergeResult, model.Limits, bool) {
		is := after(todo)
		return is.Merged, limits, is.MergeErr == nil
	})
	return after(todo.Plan), todo
}

func (in *Input) mergeModules(limits model.Limits) {
	core, others := ModuleSources(*in)
	in.Merged, in.MergeErr = model.Merge(core, others, limits)
}
