package plan

import (
	"fmt"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
)

// ReasonWaitingForTuples is the reason of the condition Deleting while tuple-sync deletes tuples.
const ReasonWaitingForTuples = "WaitingForTuples"

// nextDeletionAction returns the next action for a Store in deletion. The order is: dependents, tuples, the OpenFGA store, the
// Store.
func nextDeletionAction(in Input, obs Observed) Action {
	if _, waiting := deletionBlocker(in); waiting || !hasFinalizer(in.Store, corev1alpha1.StoreFinalizer) {
		return Action{Verb: WriteStatus}
	}
	id, ask := storeToDelete(in, obs)
	switch {
	case ask.Verb != "":
		return ask
	case id != "" && id != obs.Deleted:
		return Action{Verb: DeleteStore, StoreID: id}
	}
	return Action{Verb: RemoveFinalizer}
}

// deletionBlocker returns the condition for the obstacle of a deletion, and reports whether one exists.
func deletionBlocker(in Input) (condition.Condition, bool) {
	if len(in.Modules) > 0 {
		names := make([]string, len(in.Modules))
		for i, m := range in.Modules {
			names[i] = in.originOf(m).String()
		}
		slices.Sort(names)
		return condition.New(corev1alpha1.Deleting, true, corev1alpha1.Blocked, fmt.Sprintf(
			"%d AuthorizationModels refer to this Store; delete them or the objects that generated them, or change their spec.storeRef: %s",
			len(names), enumerateNames(names))), true
	}
	if why, waiting := protectedKindsBlocker(in); waiting {
		return why, true
	}
	if hasFinalizer(in.Store, corev1alpha1.TuplesFinalizer) {
		return condition.New(corev1alpha1.Deleting, true, ReasonWaitingForTuples, "waiting for tuple-sync to delete this Store's tuples"), true
	}
	return condition.Condition{}, false
}

// storeToDelete returns the OpenFGA store to delete with a Store, "" if none, or the read that must come first. An
// OpenFGA store that this Store created without recording it has the Store's name and no model. One with a model may be
// in use.
func storeToDelete(in Input, obs Observed) (string, Action) {
	switch id := in.recordedStoreID(); {
	case isStoreRetained(in.Store):
		return "", Action{}
	case id != "" && (in.isRecordedByOtherStore(id) || obs.isForeignStoreID(id)):
		return "", Action{}
	case id != "" && !obs.isConfirmedInOpenFGA(id) && !obs.isAbsentStore(id):
		return "", Action{Verb: GetStore, StoreID: id}
	case id != "":
		return id, Action{}
	case in.NameErr != nil:
		return "", Action{}
	case !obs.Listed:
		return "", Action{Verb: FindStores}
	}
	for _, s := range obs.Named {
		if in.isRecordedByOtherStore(s.ID) || in.isForeignStore(s) {
			continue
		}
		latest, known := obs.latestModel(s.ID)
		switch {
		case !known:
			return "", Action{Verb: LatestModel, StoreID: s.ID}
		case latest == nil:
			return s.ID, Action{}
		default:
			return "", Action{}
		}
	}
	return "", Action{}
}

// isStoreRetained reports whether the OpenFGA store of a Store outlives it.
func isStoreRetained(o *corev1alpha1.Store) bool {
	return o.Spec.DeletionPolicy == corev1alpha1.DeletionRetain || o.Status.Adopted
}

// isRecordedByOtherStore reports whether another live Store records this OpenFGA store.
func (in Input) isRecordedByOtherStore(id string) bool {
	return slices.ContainsFunc(in.Rivals, func(r CompetingStore) bool { return r.Value.Status.StoreID == id })
}

// nextCleanupAction deletes the OpenFGA stores of Stores that were deleted without waiting for our finalizer. The last state of a
// properly deleted Store is the same, so a read of OpenFGA comes first. A pass long after writes nothing.
func nextCleanupAction(in Input, obs Observed) Action {
	namesake := slices.ContainsFunc(in.Rivals, func(r CompetingStore) bool { return r.Key.Name == in.Key.Name })
	for _, gone := range append([]*corev1alpha1.Store{in.Gone}, in.Earlier...) {
		switch id := gone.Status.StoreID; {
		case id == "", obs.isAbsentStore(id), obs.isForeignStoreID(id), namesake, in.isRecordedByOtherStore(id),
			!hasFinalizer(gone, corev1alpha1.StoreFinalizer), isStoreRetained(gone):
		case obs.Found.ID != id:
			return Action{Verb: GetStore, StoreID: id}
		default:
			return Action{Verb: DeleteStore, StoreID: id}
		}
	}
	return Action{Verb: WriteStatus}
}

// DeletedStoresRecording returns the deleted Stores with the name that recorded an OpenFGA store.
func (in Input) DeletedStoresRecording(id string) []*corev1alpha1.Store {
	return slices.DeleteFunc(append([]*corev1alpha1.Store{in.Gone}, in.Earlier...), func(o *corev1alpha1.Store) bool {
		return o == nil || o.Status.StoreID != id
	})
}
