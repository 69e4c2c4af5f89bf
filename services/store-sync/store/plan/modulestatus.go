package plan

import (
	"fmt"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/truncate"
	"github.com/entail-dev/entail/services/store-sync/model"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// sourcesInStates lists the sources of the modules in one of the states.
func (in Input) sourcesInStates(states ...model.MergeState) []string {
	var sources []string
	for _, r := range in.Merged.Reports {
		if slices.Contains(states, r.State) {
			sources = append(sources, moduleSourceName(in, r.Origin))
		}
	}
	return sources
}

// further ends messages about modules whose own text is not live. It refers to the details.
const further = "; status.modules and the conditions of these objects say why, and how to revoke now"

// modulesInSyncCondition returns the condition ModulesInSync, which counts the modules whose own text is not live.
func modulesInSyncCondition(in Input, c storeChoice) condition.Condition {
	is := func(holds bool, reason, format string, args ...any) condition.Condition {
		return condition.New(corev1alpha1.ModulesInSync, holds, reason, fmt.Sprintf(format, args...))
	}
	kept, left, all := in.sourcesInStates(model.LastGoodLive), in.sourcesInStates(model.Rejected), len(in.Merged.Reports)
	switch {
	case c.problem != nil:
		return is(false, ReasonNoStore, "there is no OpenFGA store to write the modules to")
	case len(left) > 0:
		return is(false, moduleplan.ReasonRejected, "%d of %d modules are in force as declared; rejected: %s; with the last valid version in force: %d%s",
			all-len(left)-len(kept), all, enumerateNames(left), len(kept), further)
	case len(kept) > 0:
		return is(false, corev1alpha1.LastGoodLive, "%d of %d modules are in force as declared; with the last valid version in force: %s%s",
			all-len(kept), all, enumerateNames(kept), further)
	default:
		return is(true, "AllLive", "all %d modules are live", all)
	}
}

// moduleStatuses returns the list for the Store's status. Without an OpenFGA store nothing is merged.
func moduleStatuses(in Input, c storeChoice) []corev1alpha1.ModuleStatus {
	if c.problem != nil {
		return nil
	}
	reports := in.Merged.Reports[:min(len(in.Merged.Reports), MaxModules)]
	list := make([]corev1alpha1.ModuleStatus, len(reports))
	for i, r := range reports {
		list[i] = corev1alpha1.ModuleStatus{
			Name: r.Module, Source: moduleSourceName(in, r.Origin), State: corev1alpha1.ModuleState(r.State),
			Message: truncate.Text(r.Message, maxMessage), Digest: r.Digest,
		}
	}
	return list
}

// moduleSourceName returns the object that holds the module, in the form of a Store's status.
func moduleSourceName(in Input, o model.ModuleOrigin) string {
	if o.Kind == model.Core {
		return "store/" + in.Key.Name
	}
	return o.String()
}
