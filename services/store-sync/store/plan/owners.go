package plan

import (
	"fmt"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// reasonOurs is that of Adopted where nothing says otherwise.
const reasonOurs = "Ours"

// Owners is what the tuples in an OpenFGA store say of whose the IAM store is.
type Owners struct {
	// Ours means that they name this cluster, Other is a tuple that names somebody else.
	Ours  bool
	Other string
	// Granted is a tuple of IAM's types that is there. It is looked for where nobody is named.
	Granted string
}

// protects reports whether the Store is the IAM store.
func (in Input) protects() bool {
	return slices.ContainsFunc(in.Provided, func(m model.Module) bool { return m.Origin.Kind == model.IAM })
}

// asksOwners reports whether it must be known now whose an OpenFGA store is: before it gets a model, and from time to time.
// Nobody asks of one that was made in this pass, or is taken with all that is in it.
func (in Input) asksOwners(obs Observed, id string, wanted bool) bool {
	latest, _ := obs.latest(id)
	return (wanted || in.Resync) && in.protects() && in.Store.Spec.Adoption != corev1alpha1.AdoptionAlways && latest != nil && obs.OwnersOf != id
}

// alien is why an OpenFGA store is not the IAM store of this cluster, by what is known: a model that is live there decides about
// tuples of others. Where nobody is named, it is ours if it was.
func (in Input) alien(obs Observed, id string) string {
	was, _ := before(in, corev1alpha1.Adopted)
	switch found := obs.Owners; {
	case !in.protects() || obs.OwnersOf != id || in.Store.Spec.Adoption == corev1alpha1.AdoptionAlways:
		return ""
	case found.Other != "":
		return found.Other + " says that it is another's"
	case !found.Ours && found.Granted != "" && was.Reason != reasonOurs:
		return "no tuple store:" + in.Key.Name + "#owner says so, and it holds " + found.Granted
	}
	return ""
}

func (in Input) notAdopted(id, why string) string {
	return fmt.Sprintf("%s is not known to be this cluster's: %s; no model is written there until it is. `entail iam adopt --dry-run` lists what "+
		"would be deleted; then take it over by spec.adoption: %s, for which you need the right to adopt this Store, or name another "+
		"Store by --iam-store", storeNamed(id), why, corev1alpha1.AdoptionAlways)
}

// adopted says of the IAM store whether it is known to be ours; false of others, and while nobody has asked.
func adopted(in Input, obs Observed, id string) (condition.Condition, bool) {
	was, known := before(in, corev1alpha1.Adopted)
	why := in.alien(obs, id)
	latest, read := obs.latest(id)
	switch {
	case !in.protects():
		return condition.Condition{}, false
	case why != "":
		return condition.New(corev1alpha1.Adopted, false, ReasonNotAdopted, in.notAdopted(id, why)), true
	case in.Store.Spec.Adoption == corev1alpha1.AdoptionAlways:
		return condition.New(corev1alpha1.Adopted, true, "Taken", "the OpenFGA store is taken over with all that is in it, by spec.adoption"), true
	case obs.OwnersOf == id, obs.Created == id, read && latest == nil: // OpenFGA takes no tuple before there is a model.
		return condition.New(corev1alpha1.Adopted, true, reasonOurs, "nothing in the OpenFGA store says that it is another's"), true
	}
	return was, known
}
