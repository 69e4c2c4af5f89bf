package plan

import (
	"fmt"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// isProtectedResource reports whether the carrier is a ProtectedResource of a live Store.
func isProtectedResource(in Input, carrier event.Key) bool {
	return carrier.GroupResource == kinds.ProtectedResources().GroupResource && in.Store != nil
}

// protectedKindsBlocker reports whether kinds are still registered, and returns the condition that blocks the deletion. Without
// the block the Store would be created again, with all grants lost.
func protectedKindsBlocker(in Input) (condition.Condition, bool) {
	return condition.New(corev1alpha1.Deleting, true, corev1alpha1.Blocked, "ProtectedResources have types in this Store; delete the ProtectedResources first"),
		slices.ContainsFunc(in.Provided, func(m model.Module) bool { return m.Types != nil && m.Types != (model.PendingTypes{}) })
}

// typesMergedCondition returns the condition Merged for the types of ProtectedResources, and the room that they had to fit into.
func typesMergedCondition(in Input, obs Observed) (condition.Condition, model.Limits) {
	if in.isDeleting() {
		return condition.New(corev1alpha1.Merged, false, ReasonStoreDeleting,
			fmt.Sprintf("Store %q is being deleted and waits until this object is deleted; the live version stays in force until then",
				in.Key.Name)), in.Merged.Room
	}
	if p := modelProblem(in, obs, chooseOpenFGAStore(in, obs)); p != nil {
		return condition.New(corev1alpha1.Merged, false, p.reason, fmt.Sprintf("Store %q has no new model: %s", in.Key.Name, p.message)), in.Merged.Room
	}
	return condition.New(corev1alpha1.Merged, true, ReasonMerged, "part of the store's live model"), in.Merged.Room
}
