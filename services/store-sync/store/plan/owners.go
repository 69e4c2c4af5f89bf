package plan

import (
	"fmt"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// reasonOurs is the reason of Adopted if no tuple contradicts it.
const reasonOurs = "Ours"

// IAMStoreOwnerTuples holds the tuples in an OpenFGA store that name an owner of the IAM store, and the one that would name this cluster.
type IAMStoreOwnerTuples struct {
	Owner iam.Tuple
	Named []iam.Tuple
	// Granted is a tuple of IAM's types in the store. It is read only if no tuple names an owner.
	Granted string
}

// isIAMStore reports whether the Store is the IAM store.
func (in Input) isIAMStore() bool {
	return slices.ContainsFunc(in.Provided, func(m model.Module) bool { return m.Origin.Kind == model.IAM })
}

// mustReadOwners reports whether the owner of an OpenFGA store must be read now: before it gets a model, at each resync, and until
// Adopted is true of this generation. A store that was made in this pass, or is adopted with all that is in it, is not read.
func (in Input) mustReadOwners(obs Observed, id string, wanted bool) bool {
	was, _ := currentCondition(in, corev1alpha1.Adopted)
	undecided := !was.IsTrue() || !coversCurrentGeneration(in.Store, in.Store.Status.Conditions, corev1alpha1.Adopted)
	latest, _ := obs.latestModel(id)
	return (wanted || in.Resync || undecided) && in.isIAMStore() && in.Store.Spec.Adoption != corev1alpha1.AdoptionAlways &&
		latest != nil && obs.OwnersOf != id
}

// foreignStoreReason returns why an OpenFGA store is not the IAM store of this cluster, by what is known; "" if it may be. A model there would
// decide about tuples of others, so that tuples of IAM's types count while nothing says whose the store is.
func (in Input) foreignStoreReason(obs Observed, id string) string {
	if !in.isIAMStore() || obs.OwnersOf != id {
		return ""
	}
	found := obs.Owners
	adopted, refusal := iam.DecideAdoption(in.Store, found.Owner, found.Named)
	if !adopted && refusal == "" && found.Granted != "" {
		return fmt.Sprintf("it has no owner tuple %s#%s, but holds %s", found.Owner.Object, found.Owner.Relation, found.Granted)
	}
	return refusal
}

func (in Input) notAdoptedMessage(id, why string) string {
	return fmt.Sprintf("%s does not belong to this cluster: %s; no model is written there. `entail iam adopt --dry-run` lists what "+
		"would be deleted; then take it over by spec.adoption: %s, which needs the verb adopt on this Store, or name another "+
		"Store by --iam-store", describeStore(id), why, corev1alpha1.AdoptionAlways)
}

// adoptedCondition returns the condition Adopted of the IAM Store; false for others, and while the owner was not read.
func adoptedCondition(in Input, obs Observed, id string) (condition.Condition, bool) {
	why := in.foreignStoreReason(obs, id)
	latest, read := obs.latestModel(id)
	switch {
	case !in.isIAMStore():
		return condition.Condition{}, false
	case in.Store.Spec.Adoption == corev1alpha1.AdoptionAlways:
		return condition.New(corev1alpha1.Adopted, true, "Taken", "the OpenFGA store is taken over with all that is in it, by spec.adoption"), true
	case why != "":
		return condition.New(corev1alpha1.Adopted, false, ReasonNotAdopted, in.notAdoptedMessage(id, why)), true
	case obs.OwnersOf == id, obs.Created == id, read && latest == nil: // OpenFGA accepts no tuple before a model exists.
		return condition.New(corev1alpha1.Adopted, true, reasonOurs, "the OpenFGA store has no owner tuple of another cluster"), true
	case id != in.recordedStoreID(): // What is known is about another store.
		return condition.Condition{}, false
	}
	return currentCondition(in, corev1alpha1.Adopted)
}
