package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// These are reasons of the condition StoreSynced.
const (
	ReasonCreated     = "Created"
	ReasonAdopted     = "Adopted"
	ReasonRecreated   = "Recreated"
	ReasonRecorded    = "Recorded"
	ReasonInvalidName = "InvalidName"
	ReasonNameTaken   = "NameTaken"
)

// storeChoice is the choice of the Store's OpenFGA store: an id, a problem, or a read that must come first.
type storeChoice struct {
	id string
	// adopted means that another owner created the store.
	adopted bool
	problem *conditionProblem
	ask     Action
}

// conditionProblem is the reason and the message of a condition that does not hold.
type conditionProblem struct{ reason, message string }

// chooseOpenFGAStore chooses the OpenFGA store. It takes the recorded one as long as it exists in OpenFGA and no other Store
// has the better claim. Else it takes one with the Store's name that no other Store owns, else a new one.
func chooseOpenFGAStore(in Input, obs Observed) storeChoice {
	id := in.recordedStoreID()
	_, held := in.otherHolderOf(obs, id)
	switch {
	case obs.Created != "":
		return storeChoice{id: obs.Created}
	case id != "" && in.isContestedStore(id) && !obs.isAbsentStore(id) && obs.storeNameOf(in, id) == "":
		return storeChoice{ask: Action{Verb: GetStore, StoreID: id}}
	case id != "" && id != obs.Missing && !held:
		return storeChoice{id: id}
	case in.NameErr != nil:
		return storeChoice{problem: &conditionProblem{ReasonInvalidName, in.NameErr.Error() +
			"; a Store cannot be renamed: create one with another metadata.name and delete this one"}}
	case !obs.Listed:
		return storeChoice{ask: Action{Verb: FindStores}}
	}
	var taken *CompetingStore
	var free []OpenFGAStore
	for _, s := range obs.Named {
		r, held := in.otherHolderOf(obs, s.ID)
		switch {
		case s.ID == obs.Missing:
		case held:
			taken = &r
		default:
			free = append(free, s)
		}
	}
	switch {
	case len(free) > 0:
		return in.chooseFreeStore(obs, free)
	case taken != nil:
		message := moduleplan.StoreClaimedMessage(taken.Value.Status.StoreID, taken.Key.Name, taken.Key.Cluster)
		return storeChoice{problem: &conditionProblem{moduleplan.ReasonClaimed, message}}
	}
	return storeChoice{ask: Action{Verb: CreateStore}}
}

// missingStoreID returns the recorded id that OpenFGA did not find.
func missingStoreID(obs Observed, id string) string {
	if obs.Missing == id {
		return ""
	}
	return obs.Missing
}

// storeSyncedCondition returns the condition StoreSynced. It names how the Store got its OpenFGA store, and stays until the
// Store has another one.
func storeSyncedCondition(in Input, obs Observed, c storeChoice) condition.Condition {
	if c.problem != nil {
		return condition.New(corev1alpha1.StoreSynced, false, c.problem.reason, c.problem.message)
	}
	is := func(reason, format string, args ...any) condition.Condition {
		return condition.New(corev1alpha1.StoreSynced, true, reason, fmt.Sprintf(format, args...))
	}
	gone := missingStoreID(obs, c.id)
	known, _ := currentCondition(in, corev1alpha1.StoreSynced)
	switch {
	case known.IsTrue() && strings.HasPrefix(known.Message, describeStore(c.id)):
		return known
	case c.id == obs.Created && gone != "":
		return is(ReasonRecreated, "%s was created because %s, with its content, is missing in OpenFGA", describeStore(c.id), gone)
	case c.id == obs.Created:
		return is(ReasonCreated, "%s was created", describeStore(c.id))
	case c.id == in.recordedStoreID():
		return is(ReasonRecorded, "%s is the one in status.storeId", describeStore(c.id))
	case gone != "":
		return is(ReasonAdopted, "%s with this name was adopted because %s is missing in OpenFGA", describeStore(c.id), gone)
	default:
		return is(ReasonAdopted, "%s existed with this name and was adopted", describeStore(c.id))
	}
}

func describeStore(id string) string { return "OpenFGA store " + id }

// nameUniqueCondition returns the condition NameUnique, which warns of other OpenFGA stores with the same name. If this pass has
// not listed them, it returns the last condition, and false if none exists.
func nameUniqueCondition(in Input, obs Observed, id string) (condition.Condition, bool) {
	if !obs.Listed {
		return currentCondition(in, corev1alpha1.NameUnique)
	}
	others := slices.DeleteFunc(slices.Clone(obs.Named), func(s OpenFGAStore) bool { return s.ID == id })
	if len(others) == 0 {
		return condition.New(corev1alpha1.NameUnique, true, "Unique", "no other OpenFGA store has this name"), true
	}
	ids := make([]string, len(others))
	for i, s := range others {
		ids[i] = s.ID
	}
	return condition.New(corev1alpha1.NameUnique, false, "SeveralStores", fmt.Sprintf(
		"OpenFGA has %d more stores named %q: %s; %s is in use; delete the others if they are not needed",
		len(others), in.Key.Name, enumerateNames(ids), describeStore(id))), true
}

// nameInSyncCondition returns the condition NameInSync, which warns of an OpenFGA store with another name. If this pass has not
// read the name, it returns the last condition, and false if none exists.
func nameInSyncCondition(in Input, obs Observed, id string) (condition.Condition, bool) {
	switch {
	case obs.isKnownByName(id), obs.Found.ID == id && (obs.Renamed || obs.Found.Name == in.Key.Name):
		return condition.New(corev1alpha1.NameInSync, true, "InSync", "the OpenFGA store has this name"), true
	case obs.Found.ID == id && obs.RenameErr != nil:
		return condition.New(corev1alpha1.NameInSync, false, "Unsupported", fmt.Sprintf(
			"%s is named %q and cannot be renamed (%v); Entail continues to use it", describeStore(id), obs.Found.Name, obs.RenameErr)), true
	}
	return currentCondition(in, corev1alpha1.NameInSync)
}
