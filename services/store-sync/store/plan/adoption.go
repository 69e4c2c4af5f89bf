package plan

import (
	"fmt"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// adopt chooses among OpenFGA stores of the Store's name that nobody has, the oldest first: the one that an earlier Store
// of the name recorded, else the oldest, if its model is the one that the status names, if it is empty, or if it may be
// taken with all that is in it. OpenFGA takes no tuple before there is a model: without one it is empty.
func (in Input) adopt(obs Observed, free []Store) storeChoice {
	for _, s := range free {
		i := slices.IndexFunc(in.Earlier, func(o *corev1alpha1.Store) bool { return o.Status.StoreID == s.ID })
		if i >= 0 && !obs.foreign(s.ID) {
			return storeChoice{id: s.ID, adopted: in.Earlier[i].Status.Adopted}
		}
	}
	oldest := free[0]
	switch latest, known := obs.latest(oldest.ID); {
	case !known:
		return storeChoice{ask: Action{Verb: LatestModel, StoreID: oldest.ID}}
	case latest == nil:
		return storeChoice{id: oldest.ID, adopted: in.foreign(oldest)}
	case latest.GetId() == in.Store.Status.AuthorizationModelID:
		return storeChoice{id: oldest.ID}
	case in.Store.Spec.Adoption == corev1alpha1.AdoptionAlways:
		return storeChoice{id: oldest.ID, adopted: true}
	}
	return storeChoice{problem: &problem{ReasonNameTaken, in.nameTaken(oldest.ID)}}
}

// nameTaken says what people can do about an OpenFGA store that is not ours.
func (in Input) nameTaken(id string) string {
	rename, taken := "give the Store another name", "as it is"
	if in.protects() {
		rename, taken = "name another by --iam-store", "without its tuples of types with a '/', which are removed unless IAM declares them,"
	}
	return fmt.Sprintf("%s bears this name and has a model already; %s, or take that one over %s by spec.adoption: %s, "+
		"for which you need the right to adopt this Store", storeNamed(id), rename, taken, corev1alpha1.AdoptionAlways)
}

// foreign reports whether an OpenFGA store is older than every Store of the name that is known. One that is not, and that
// nobody recorded, was made in a pass that did not live to record it.
func (in Input) foreign(s Store) bool {
	older := func(o *corev1alpha1.Store) bool { return s.CreatedAt.Before(o.CreationTimestamp.Time) }
	return older(in.Store) && !slices.ContainsFunc(in.Earlier, func(o *corev1alpha1.Store) bool { return !older(o) })
}
