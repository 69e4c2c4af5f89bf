package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// StoreOutageStatus returns our part of a Store's status while OpenFGA does not answer. It returns false if the status
// already covers this generation, or one that differs only in tuples.
func StoreOutageStatus(in Input, message string) (corev1alpha1.StoreStatus, bool) {
	s, typ := OwnedStoreStatus(in.Store.Status), corev1alpha1.ModelSynced
	switch {
	case in.isDeleting():
		typ = corev1alpha1.Deleting
	case s.StoreID == "":
		typ = corev1alpha1.StoreSynced
	}
	decided := s.ModelDigest == in.Store.ModelDigest() && !in.isDeleting() || setUnknownUnlessCurrent(&s.Conditions, in.Store, in.Now, typ, message)
	return s, !decided
}

// ModuleStatusDuringOutage returns the same for an AuthorizationModel.
func ModuleStatusDuringOutage(in Input, m ModelObject, message string) (corev1alpha1.AuthorizationModelStatus, bool) {
	s := OwnedModuleStatus(m.Value.Status)
	storeID, _ := in.tupleStoreAndModel(Observed{})
	decided := s.ModelDigest == m.Value.ModelDigest(storeID) || setUnknownUnlessCurrent(&s.Conditions, m.Value, in.Now, corev1alpha1.Merged, message)
	return s, !decided
}

// OutageVerdict returns the verdict on a module of a member while OpenFGA does not answer.
func OutageVerdict(in Input, message string) moduleplan.Verdict {
	return moduleplan.Verdict{Now: in.Now, Merged: unknownCondition(corev1alpha1.Merged, message)}
}

func unknownCondition(typ, message string) condition.Condition {
	return condition.Condition{Type: typ, Status: metav1.ConditionUnknown, Reason: corev1alpha1.BackendUnavailable, Message: message}
}

// setUnknownUnlessCurrent sets a condition to unknown, unless it covers the object's current generation.
func setUnknownUnlessCurrent(conditions *[]metav1.Condition, o metav1.Object, now metav1.Time, typ, message string) (decided bool) {
	if coversCurrentGeneration(o, *conditions, typ) {
		return true
	}
	*conditions = condition.MergeConditions(*conditions, append(ownedStoreConditions(), ownedModuleConditions()...), o.GetGeneration(), now,
		unknownCondition(typ, message))
	return false
}
