package checker

import (
	"context"
	"strings"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// checkDefinitions requires exactly one AuthorizationModel for each labelled definition. It ignores a Store that is
// being deleted, which gets no new models and loses none.
func checkDefinitions(_ context.Context, w *CheckedSystem) error {
	want, is := map[string]bool{}, map[string]bool{}
	suffix := "." + workload.DefinitionGroup
	var plurals []string
	for _, d := range w.Snapshot.UndeletedOfKind(workload.DefinitionResource()) {
		plural, ours := strings.CutSuffix(d.GetName(), suffix)
		if !ours {
			continue
		}
		plurals = append(plurals, plural)
		if store := d.GetLabels()[workload.StoreLabel]; store != "" && !w.Snapshot.isStoreDeleting(store) {
			want[plural+"-"+store] = true
		}
	}
	for _, m := range w.Snapshot.UndeletedOfKind(workload.AuthorizationModelResource()) {
		for _, plural := range plurals {
			if strings.HasPrefix(m.GetName(), plural+"-") && !w.Snapshot.isStoreDeleting(textField(m, "spec", "storeRef", "name")) {
				is[m.GetName()] = true
			}
		}
	}
	return compareMaps("AuthorizationModels of definitions", is, want)
}
