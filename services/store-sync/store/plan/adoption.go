package plan

import (
	"fmt"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// chooseFreeStore chooses among the OpenFGA stores with the Store's name that no Store owns, oldest first. It prefers one that an
// earlier Store with the name recorded. Else it takes the oldest if that has the model of the Store's status, if it is
// empty, or if spec.adoption allows it. A store without a model is empty, because OpenFGA accepts no tuple before a
// model exists.
func (in Input) chooseFreeStore(obs Observed, free []OpenFGAStore) storeChoice {
	for _, s := range free {
		i := slices.IndexFunc(in.Earlier, func(o *corev1alpha1.Store) bool { return o.Status.StoreID == s.ID })
		if i >= 0 && !obs.isForeignStoreID(s.ID) {
			return storeChoice{id: s.ID, adopted: in.Earlier[i].Status.Adopted}
		}
	}
	oldest := free[0]
	switch latest, known := obs.latestModel(oldest.ID); {
	case !known:
		return storeChoice{ask: Action{Verb: LatestModel, StoreID: oldest.ID}}
	case latest == nil:
		return storeChoice{id: oldest.ID, adopted: in.isForeignStore(oldest)}
	case latest.GetId() == in.Store.Status.AuthorizationModelID:
		return storeChoice{id: oldest.ID}
	case in.Store.Spec.Adoption == corev1alpha1.AdoptionAlways:
		return storeChoice{id: oldest.ID, adopted: true}
	}
	return storeChoice{problem: &conditionProblem{ReasonNameTaken, in.nameTakenMessage(oldest.ID)}}
}

// nameTakenMessage returns the message that lists what users can do about an OpenFGA store of another owner.
func (in Input) nameTakenMessage(id string) string {
	rename, taken := "give the Store another name", "as it is"
	if in.isIAMStore() {
		rename, taken = "name another by --iam-store", "without its tuples of types with a '/', which are removed unless IAM declares them,"
	}
	return fmt.Sprintf("%s has this name and a model already; %s, or take that one over %s by spec.adoption: %s, "+
		"which needs the verb adopt on this Store", describeStore(id), rename, taken, corev1alpha1.AdoptionAlways)
}

// isForeignStore reports whether an OpenFGA store is older than every known Store with the name. A younger one without a
// record was created in a pass that ended before it recorded the id.
func (in Input) isForeignStore(s OpenFGAStore) bool {
	older := func(o *corev1alpha1.Store) bool { return s.CreatedAt.Before(o.CreationTimestamp.Time) }
	return older(in.Store) && !slices.ContainsFunc(in.Earlier, func(o *corev1alpha1.Store) bool { return !older(o) })
}
