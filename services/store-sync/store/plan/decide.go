package plan

import (
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
	policyplan "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

// Decide maps the objects of a live Store and their statuses to its model. It compiles the documents beside what the last merge has of
// other modules, carries that out in the input, and merges all of it. The input that it returns has the model in Merged, and Verdict
// and StoreStatus read it. The plan has the verdicts on documents.
func Decide(in Input, documents []policyplan.Document, limits model.Limits) (Input, policyplan.Plan) {
	in.merge(limits)
	policies := policyplan.Input{
		Store: corev1alpha1.StoreRef{Name: in.Key.Name}, Roles: in.Store.Annotations[iaplv1alpha1.RolesAnnotation], Documents: documents,
	}
	for _, m := range in.Modules {
		if m.document() != "" && m.Key.Cluster == in.Key.Cluster {
			policies.Has = append(policies.Has, m.Value)
		}
	}
	policies.Beside(in.Merged, limits)
	todo := policyplan.Make(policies)
	in = in.After(todo.Plan, in.Now)
	in.merge(limits)
	return in, todo
}

func (in *Input) merge(limits model.Limits) {
	core, others := Sources(*in)
	in.Merged, in.MergeErr = model.Merge(core, others, limits)
}
