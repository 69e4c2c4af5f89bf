package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// Reasons of the condition Merged.
const (
	ReasonDuplicate     = "Duplicate"
	ReasonRejected      = "Rejected"
	ReasonStoreNotFound = "StoreNotFound"
	ReasonStoreDeleting = "StoreDeleting"
	ReasonStorePending  = "StorePending"
)

func moduleConditions() []string { return []string{corev1alpha1.Merged, corev1alpha1.Ready} }

// OwnModuleStatus is the part of an AuthorizationModel's status that store-sync writes.
func OwnModuleStatus(s corev1alpha1.AuthorizationModelStatus) corev1alpha1.AuthorizationModelStatus {
	return corev1alpha1.AuthorizationModelStatus{
		ObservedGeneration: s.ObservedGeneration,
		Conditions:         condition.Apply(s.Conditions, moduleConditions(), 0, metav1.Time{}),
	}
}

// ModuleStatus is that part as it should be at the end of a pass.
func ModuleStatus(in Input, obs Observed, m Module) corev1alpha1.AuthorizationModelStatus {
	o := m.Value
	merged := mergedCondition(in, obs, m)
	moved := len(o.Spec.Tuples) > 0 && o.Status.StoreID != in.storeID(obs)
	return corev1alpha1.AuthorizationModelStatus{
		ObservedGeneration: o.Generation,
		Conditions: condition.Apply(o.Status.Conditions, moduleConditions(), o.Generation, in.Now,
			merged, ready(merged, tuplesSynced(o.Status.Conditions, o, moved))),
	}
}

func mergedCondition(in Input, obs Observed, m Module) condition.Condition {
	no := func(reason, format string, args ...any) condition.Condition {
		return condition.New(corev1alpha1.Merged, false, reason, fmt.Sprintf(format, args...))
	}
	switch {
	case in.Elsewhere != nil:
		return elsewhere(in, m)
	case in.Store == nil:
		return no(ReasonStoreNotFound, "there is no Store %q in cluster %q: create it, or correct spec.storeRef", in.Key.Name, in.Key.Cluster)
	case in.deleting():
		return unlessLive(m, true, no(ReasonStoreDeleting, "Store %q is being deleted: point spec.storeRef elsewhere, or delete this object", in.Key.Name))
	}
	if m.empty() {
		return condition.New(corev1alpha1.Merged, true, ReasonMerged, "it declares nothing that a model has")
	}
	c := chooseStore(in, obs)
	if p := modelProblem(in, obs, c); p != nil {
		latest, _ := obs.latest(c.id)
		if report, _ := in.report(m); report.State == model.Rejected && p.reason != ReasonInvalidCore {
			return no(ReasonRejected, "%s", report.Message)
		}
		// Without its core nothing is known of a module: it may only lack what the core should define.
		return unlessLive(m, latest != nil, no(p.reason, "Store %q has no new model: %s", in.Key.Name, p.message))
	}
	return merged(in, m)
}

// storeID is the OpenFGA store that the module's tuples belong into, "" if there is none.
func (in Input) storeID(obs Observed) string {
	switch {
	case in.Elsewhere != nil:
		return in.Elsewhere.Status.StoreID
	case in.Store == nil:
		return ""
	}
	return chooseStore(in, obs).id
}

// elsewhere is what the Store's own cluster found of a module of this one.
func elsewhere(in Input, m Module) condition.Condition {
	source := in.origin(m).String()
	i := slices.IndexFunc(in.Elsewhere.Status.Modules, func(s corev1alpha1.ModuleStatus) bool { return s.Source == source })
	if i < 0 {
		return condition.New(corev1alpha1.Merged, false, ReasonStorePending,
			fmt.Sprintf("Store %q in cluster %q does not list this module yet", in.Key.Name, in.Key.Cluster))
	}
	is := condition.New(corev1alpha1.Merged, true, ReasonMerged, "part of the store's live model")
	switch s := in.Elsewhere.Status.Modules[i]; model.State(s.State) {
	case model.Rejected:
		return condition.New(corev1alpha1.Merged, false, ReasonRejected, s.Message)
	case model.Duplicate:
		is.Reason, is.Message = ReasonDuplicate, s.Message
	case model.Merged:
	}
	return is
}

// merged is the condition of a module when the merge is live. It does not name the model, or
// every new model would mean a write to every object that is part of it.
func merged(in Input, m Module) condition.Condition {
	report, ok := in.report(m)
	is := condition.New(corev1alpha1.Merged, true, ReasonMerged, "part of the store's live model")
	switch {
	case !ok || report.State == model.Rejected:
		return condition.New(corev1alpha1.Merged, false, ReasonRejected, report.Message)
	case report.State == model.Duplicate:
		is.Reason, is.Message = ReasonDuplicate, report.Message
	}
	return is
}

// unlessLive keeps the condition of a module whose present generation is part of the model that stays live.
func unlessLive(m Module, kept bool, otherwise condition.Condition) condition.Condition {
	c := meta.FindStatusCondition(m.Value.Status.Conditions, corev1alpha1.Merged)
	if kept && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Value.Generation {
		return known(c)
	}
	return otherwise
}
