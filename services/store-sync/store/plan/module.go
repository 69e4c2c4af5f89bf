package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Reasons of the condition Merged.
const (
	ReasonDuplicate     = "Duplicate"
	ReasonStoreNotFound = "StoreNotFound"
	ReasonStoreDeleting = "StoreDeleting"
	ReasonStorePending  = "StorePending"
)

// OwnModuleStatus is the part of an AuthorizationModel's status that store-sync writes.
func OwnModuleStatus(s corev1alpha1.AuthorizationModelStatus) corev1alpha1.AuthorizationModelStatus {
	return corev1alpha1.AuthorizationModelStatus{
		ModelDigest: s.ModelDigest, AuthorizationModelID: s.AuthorizationModelID,
		Conditions: condition.Apply(s.Conditions, moduleConditions(), 0, metav1.Time{}),
	}
}

func moduleConditions() []string { return []string{corev1alpha1.Merged} }

// ModuleStatus is what the status of an AuthorizationModel must be. The tuples there are tuple-sync's.
func ModuleStatus(o *corev1alpha1.AuthorizationModel, verdict moduleplan.Verdict) moduleplan.Status {
	has := OwnModuleStatus(o.Status)
	s := corev1alpha1.AuthorizationModelStatus{
		Conditions: condition.Apply(has.Conditions, moduleConditions(), o.Generation, verdict.Now, verdict.Merged),
	}
	if verdict.Merged.Holds() {
		s.ModelDigest, s.AuthorizationModelID = o.ModelDigest(verdict.StoreID), verdict.ModelID
		if s.ModelDigest == has.ModelDigest {
			s.AuthorizationModelID = has.AuthorizationModelID
		}
	}
	status := moduleplan.NewStatus(has, s, s.Conditions, corev1alpha1.Merged)
	if c, ok := condition.Changed(has.Conditions, s.Conditions, corev1alpha1.Merged); ok && c.Reason == moduleplan.ReasonRejected {
		status.Notes = []condition.Note{{Warning: true, Reason: "ModuleRejected", Message: c.Message}}
	}
	return status
}

// Verdict is what became of the module that an AuthorizationModel carries. Where there is none,
// only a Store that is missing or in deletion says something about it.
func Verdict(in Input, obs Observed, carrier event.Key) moduleplan.Verdict {
	v := moduleplan.Verdict{Now: in.Now}
	v.StoreID, v.ModelID = in.storeOf(obs)
	no := func(reason, format string, args ...any) condition.Condition {
		return condition.New(corev1alpha1.Merged, false, reason, fmt.Sprintf(format, args...))
	}
	i := slices.IndexFunc(in.Modules, func(m Module) bool { return m.Key == carrier })
	switch {
	case i >= 0 && in.Elsewhere != nil:
		v.Merged = elsewhere(in, in.Modules[i])
	case in.Store == nil:
		v.Merged = no(ReasonStoreNotFound, "there is no Store %q in cluster %q: create it, or correct spec.storeRef", in.Key.Name, in.Key.Cluster)
	case in.deleting():
		v.Merged = no(ReasonStoreDeleting, "Store %q is being deleted: point spec.storeRef elsewhere, or delete this object", in.Key.Name)
		if i >= 0 {
			v.Merged = unlessLive(in.Modules[i], true, v.Merged)
		}
	case i >= 0:
		v.Merged = mergedCondition(in, obs, in.Modules[i])
	}
	return v
}

// mergedCondition is that of a module of a live Store here.
func mergedCondition(in Input, obs Observed, m Module) condition.Condition {
	if m.empty() {
		return condition.New(corev1alpha1.Merged, true, ReasonMerged, "it declares nothing that a model has")
	}
	report, known := in.report(m)
	c := chooseStore(in, obs)
	if p := modelProblem(in, obs, c); p != nil {
		if report.State == model.Rejected && p.reason != ReasonInvalidCore {
			return mergedAs(report.State, report.Message)
		}
		latest, _ := obs.latest(c.id)
		// Without its core nothing is known of a module: it may only lack what the core should define.
		return unlessLive(m, latest != nil, condition.New(corev1alpha1.Merged, false, p.reason,
			fmt.Sprintf("Store %q has no new model: %s", in.Key.Name, p.message)))
	}
	if !known {
		return mergedAs(model.Rejected, "")
	}
	return mergedAs(report.State, report.Message)
}

// storeOf is the OpenFGA store that the module's tuples belong into, and its model; "" if there is none.
func (in Input) storeOf(obs Observed) (storeID, modelID string) {
	switch {
	case in.Elsewhere != nil:
		return in.Elsewhere.Status.StoreID, in.Elsewhere.Status.AuthorizationModelID
	case in.Store == nil:
		return "", ""
	}
	id := chooseStore(in, obs).id
	return id, in.modelID(obs, id)
}

// elsewhere is what the Store's own cluster found of a module of this one.
func elsewhere(in Input, m Module) condition.Condition {
	source := in.origin(m).String()
	i := slices.IndexFunc(in.Elsewhere.Status.Modules, func(s corev1alpha1.ModuleStatus) bool { return s.Source == source })
	if i < 0 {
		return condition.New(corev1alpha1.Merged, false, ReasonStorePending,
			fmt.Sprintf("Store %q in cluster %q does not list this module yet", in.Key.Name, in.Key.Cluster))
	}
	return mergedAs(model.State(in.Elsewhere.Status.Modules[i].State), in.Elsewhere.Status.Modules[i].Message)
}

// mergedAs is the condition of a module by what the merge made of it. It does not name the model,
// or every new model would mean a write to every object that is part of it.
func mergedAs(state model.State, message string) condition.Condition {
	switch state {
	case model.Rejected:
		return condition.New(corev1alpha1.Merged, false, moduleplan.ReasonRejected, message)
	case model.Duplicate:
		return condition.New(corev1alpha1.Merged, true, ReasonDuplicate, message)
	default:
		return condition.New(corev1alpha1.Merged, true, ReasonMerged, "part of the store's live model")
	}
}

// unlessLive keeps the condition of a module whose present generation is part of the model that stays live.
func unlessLive(m Module, kept bool, otherwise condition.Condition) condition.Condition {
	c := meta.FindStatusCondition(m.Value.Status.Conditions, corev1alpha1.Merged)
	if kept && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Value.Generation {
		return known(c)
	}
	return otherwise
}
