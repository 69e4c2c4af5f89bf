package plan

import (
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
	policyplan "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

// Decide computes the model of a live Store from its objects and their statuses. It compiles the documents beside the
// other modules of the last merge, applies that plan to the input, and merges everything. The returned input holds the
// model in Merged, for Verdict and StoreStatus. The plan holds the validations of documents.
func Decide(in Input, documents []policyplan.Document, limits model.Limits) (Input, policyplan.Plan) {
	in.mergeModules(limits)
	policies := policyplan.Input{
		Store: corev1alpha1.StoreRef{Name: in.Key.Name}, Roles: in.Store.Annotations[iaplv1alpha1.RolesAnnotation], Documents: documents,
	}
	for _, m := range in.Modules {
		if m.documentName() != "" && m.Key.Cluster == in.Key.Cluster {
			policies.Has = append(policies.Has, m.Value)
		}
	}
	policies.Beside(in.Merged, limits)
	todo := policyplan.Make(policies)
	in = in.After(todo.Plan, in.Now)
	in.mergeModules(limits)
	return in, todo
}

func (in *Input) mergeModules(limits model.Limits) {
	core, others := Sources(*in)
	in.Merged, in.MergeErr = model.Merge(core, others, limits)
}
