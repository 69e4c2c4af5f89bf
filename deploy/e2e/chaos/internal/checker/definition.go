package checker

import (
	"context"
	"strings"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// checkDefinitions requires exactly one AuthorizationModel for each labelled definition whose Store is live. A Store in
// deletion gets no new models and loses none. Neither does a deleted Store that store-sync remembers; without that
// memory, as after a restart, the definition gets its model before the Store exists.
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
		if store := d.GetLabels()[workload.StoreLabel]; store != "" && w.Snapshot.isStoreLive(store) {
			want[plural+"-"+store] = true
		}
	}
	for _, m := range w.Snapshot.UndeletedOfKind(workload.AuthorizationModelResource()) {
		for _, plural := range plurals {
			if strings.HasPrefix(m.GetName(), plural+"-") && w.Snapshot.isStoreLive(textField(m, "spec", "storeRef", "name")) {
				is[m.GetName()] = true
			}
		}
	}
	return compareMaps("AuthorizationModels of definitions", is, want)
}
