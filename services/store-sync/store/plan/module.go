package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// These are reasons of the condition Merged.
const (
	ReasonDuplicate     = "Duplicate"
	ReasonStoreNotFound = "StoreNotFound"
	ReasonStoreDeleting = "StoreDeleting"
	ReasonStorePending  = "StorePending"

	reasonNothingToMerge = "NothingToMerge"
)

// ownedModuleConditions returns the condition types that store-sync writes to an AuthorizationModel.
func ownedModuleConditions() []string { return []string{corev1alpha1.Merged} }

// OwnedModuleStatus returns the part of an AuthorizationModel's status that store-sync writes.
func OwnedModuleStatus(s corev1alpha1.AuthorizationModelStatus) corev1alpha1.AuthorizationModelStatus {
	return corev1alpha1.AuthorizationModelStatus{
		ModelDigest: s.ModelDigest, AuthorizationModelID: s.AuthorizationModelID, Live: s.Live,
		Conditions: condition.MergeConditions(s.Conditions, ownedModuleConditions(), 0, metav1.Time{}),
	}
}

// unmergedReasons returns the reasons of the condition Merged that say that the current text of a module is not in the
// merged model. An earlier text may be.
func unmergedReasons() []string {
	return []string{moduleplan.ReasonRejected, corev1alpha1.LastGoodLive, ReasonLimitExceeded}
}

// DesiredModuleStatus returns the desired status of an AuthorizationModel. The fields about tuples belong to tuple-sync.
func DesiredModuleStatus(o *corev1alpha1.AuthorizationModel, verdict moduleplan.Verdict) moduleplan.ObjectStatus {
	has := OwnedModuleStatus(o.Status)
	s := corev1alpha1.AuthorizationModelStatus{
		Live: verdict.Live, Conditions: condition.MergeConditions(has.Conditions, ownedModuleConditions(), o.Generation, verdict.Now, verdict.Merged),
	}
	if verdict.Merged.IsTrue() {
		s.ModelDigest, s.AuthorizationModelID = o.ModelDigest(verdict.StoreID), verdict.ModelID
		if s.ModelDigest == has.ModelDigest {
			s.AuthorizationModelID = has.AuthorizationModelID
		}
	}
	status := moduleplan.NewObjectStatus(has, s, s.Conditions, corev1alpha1.Merged)
	if has.ModelDigest != "" && has.ModelDigest == s.ModelDigest && canDeferObservedGeneration(o, o.Status.Conditions) {
		has.Conditions, s.Conditions = withoutObservedGeneration(has.Conditions), withoutObservedGeneration(s.Conditions)
		status.Same = equality.Semantic.DeepEqual(has, s)
	}
	if c, ok := condition.FindChangedCondition(has.Conditions, s.Conditions, corev1alpha1.Merged); ok && slices.Contains(unmergedReasons(), c.Reason) {
		status.Notes = []condition.EventContent{{Warning: true, Reason: "ModuleRejected", Message: c.Message}}
	}
	return status
}

// ModuleVerdict returns the state of the module that an AuthorizationModel carries. Without a carrier, Merged is set only if
// the Store is missing or in deletion.
func ModuleVerdict(in Input, obs Observed, carrier event.Key) moduleplan.Verdict {
	v := moduleplan.Verdict{Now: in.Now}
	v.StoreID, v.ModelID = in.tupleStoreAndModel(obs)
	no := func(reason, format string, args ...any) condition.Condition {
		return condition.New(corev1alpha1.Merged, false, reason, fmt.Sprintf(format, args...))
	}
	i := slices.IndexFunc(in.Modules, func(m ModelObject) bool { return m.Key == carrier })
	switch {
	case isProtectedResource(in, carrier):
		v.Merged, v.Room = typesMergedCondition(in, obs)
	case i >= 0 && in.Elsewhere != nil:
		// Live stays nil: the Store's cluster does not report which generation it merged.
		v.Merged = mergedElsewhereCondition(in, in.Modules[i])
	case in.Store == nil:
		v.Merged = no(ReasonStoreNotFound, "%s", corev1alpha1.StoreNotFoundMessage(in.Key, carrier.Cluster))
	case in.isDeleting():
		v.Merged = no(ReasonStoreDeleting, "Store %q is being deleted: point spec.storeRef elsewhere, or delete this object", in.Key.Name)
		if i >= 0 {
			v.Merged, v.Live = in.presentConditionIfLive(in.Modules[i], true, v.Merged), in.recordedLiveText(in.Modules[i])
		}
	case i >= 0:
		v.Merged, v.Live = mergedCondition(in, obs, in.Modules[i]), in.recordedLiveText(in.Modules[i])
		if modelProblem(in, obs, chooseOpenFGAStore(in, obs)) == nil {
			v.Live = in.nextLiveRecord(in.Modules[i])
		}
	}
	return v
}

// mergedCondition returns the condition Merged of a module of a live Store of this cluster.
func mergedCondition(in Input, obs Observed, m ModelObject) condition.Condition {
	if m.isEmpty() {
		return condition.New(corev1alpha1.Merged, true, reasonNothingToMerge, "it declares nothing that a model has")
	}
	report, known := in.mergeReportOn(m)
	c := chooseOpenFGAStore(in, obs)
	if p := modelProblem(in, obs, c); p != nil {
		if report.State == model.Rejected && p.reason != ReasonInvalidCore {
			return mergedConditionOfReport(report)
		}
		latest, _ := obs.latestModel(c.id)
		// Without the core module no verdict is possible: the module may only lack a type that the core should define.
		return in.presentConditionIfLive(m, latest != nil, condition.New(corev1alpha1.Merged, false, p.reason,
			fmt.Sprintf("Store %q has no new model: %s", in.Key.Name, p.message)))
	}
	if !known {
		report.State = model.Rejected
	}
	return mergedConditionOfReport(report)
}

// tupleStoreAndModel returns the OpenFGA store for the module's tuples, and its model; "" if none exists.
func (in Input) tupleStoreAndModel(obs Observed) (storeID, modelID string) {
	switch {
	case in.Elsewhere != nil:
		return in.Elsewhere.Status.StoreID, in.Elsewhere.Status.AuthorizationModelID
	case in.Store == nil:
		return "", ""
	}
	id := chooseOpenFGAStore(in, obs).id
	return id, in.liveModelID(obs, id)
}

// mergedElsewhereCondition returns the condition Merged that the Store's own cluster reports for a module of this one.
func mergedElsewhereCondition(in Input, m ModelObject) condition.Condition {
	source := in.originOf(m).String()
	i := slices.IndexFunc(in.Elsewhere.Status.Modules, func(s corev1alpha1.ModuleStatus) bool { return s.Source == source })
	if i < 0 {
		return condition.New(corev1alpha1.Merged, false, ReasonStorePending,
			fmt.Sprintf("Store %q in cluster %q does not list this module yet", in.Key.Name, in.Key.Cluster))
	}
	is := in.Elsewhere.Status.Modules[i]
	return mergedConditionOfReport(model.ModuleReport{State: model.MergeState(is.State), Message: is.Message})
}

// mergedConditionOfReport returns the condition Merged for a result of the merge. It does not name the model. Otherwise every new
// model would cause a write to every object in it.
func mergedConditionOfReport(r model.ModuleReport) condition.Condition {
	switch {
	case r.State == model.LastGoodLive:
		return condition.New(corev1alpha1.Merged, false, corev1alpha1.LastGoodLive,
			r.Message+"; the last valid version, status.live, stays in force: "+remainingRightsText(r))
	case r.State == model.Rejected && r.Exceeds:
		return condition.New(corev1alpha1.Merged, false, ReasonLimitExceeded, r.Message)
	case r.State == model.Rejected:
		return condition.New(corev1alpha1.Merged, false, moduleplan.ReasonRejected, r.Message)
	case r.State == model.Duplicate:
		return condition.New(corev1alpha1.Merged, true, ReasonDuplicate, r.Message)
	default:
		return condition.New(corev1alpha1.Merged, true, ReasonMerged, "part of the store's live model")
	}
}

// remainingRightsText returns the text that explains what a rejected edit has not removed, and how to remove it now.
func remainingRightsText(r model.ModuleReport) string {
	if r.Unread {
		return "nothing that this edit removes from the model has been removed; to revoke now, apply a text that can be parsed, " +
			"or remove tuples from spec.tuples"
	}
	return "definitions that this edit removes are gone, unless others need them; access that it narrows is still granted; " +
		"to revoke now, apply a valid text, or remove tuples from spec.tuples"
}

// presentConditionIfLive returns the present condition of a module whose current text is part of the model that stays live, else
// otherwise.
func (in Input) presentConditionIfLive(m ModelObject, kept bool, otherwise condition.Condition) condition.Condition {
	c := meta.FindStatusCondition(m.Value.Status.Conditions, corev1alpha1.Merged)
	now := coversCurrentGeneration(m.Value, m.Value.Status.Conditions, corev1alpha1.Merged) ||
		m.Value.Status.ModelDigest == m.Value.ModelDigest(in.recordedStoreID())
	if kept && c != nil && c.Status == metav1.ConditionTrue && now {
		return withoutDates(c)
	}
	return otherwise
}
