package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// Reasons of the condition StoreSynced.
const (
	ReasonCreated     = "Created"
	ReasonAdopted     = "Adopted"
	ReasonRecreated   = "Recreated"
	ReasonRecorded    = "Recorded"
	ReasonInvalidName = "InvalidName"
	ReasonClaimed     = "Claimed"
)

// storeChoice is which OpenFGA store is the Store's: an id, a problem, or a question first.
type storeChoice struct {
	id      string
	problem *problem
	ask     Verb
}

// problem is why something cannot be done, for people.
type problem struct{ reason, message string }

// resolve chooses the OpenFGA store: the recorded one as long as OpenFGA knows it, else
// the oldest of the Store's name that no other Store has, else a new one.
func chooseStore(in Input, obs Observed) storeChoice {
	id := in.recorded()
	_, held := in.holder(id)
	switch {
	case obs.Created != "":
		return storeChoice{id: obs.Created}
	case id != "" && id != obs.Missing && !held:
		return storeChoice{id: id}
	case in.NameErr != nil:
		return storeChoice{problem: &problem{ReasonInvalidName, clip(in.NameErr.Error() +
			"; a Store cannot be renamed: create one with another metadata.name and delete this one")}}
	case !obs.Listed:
		return storeChoice{ask: FindStores}
	}
	var taken *Rival
	for _, s := range obs.Named {
		r, held := in.holder(s.ID)
		switch {
		case s.ID == obs.Missing:
		case held:
			taken = &r
		default:
			return storeChoice{id: s.ID}
		}
	}
	if taken != nil {
		return storeChoice{problem: &problem{ReasonClaimed, clip(fmt.Sprintf(
			"OpenFGA store %s belongs to Store %q of cluster %q; two Stores cannot share one: delete one of them, or give it another name",
			taken.Value.Status.StoreID, taken.Key.Name, taken.Key.Cluster))}}
	}
	return storeChoice{ask: CreateStore}
}

// lost is the recorded id that OpenFGA turned out not to know.
func lost(obs Observed, id string) string {
	if obs.Missing == id {
		return ""
	}
	return obs.Missing
}

// storeSynced tells how the Store came by its OpenFGA store, until it has another one.
func storeSynced(in Input, obs Observed, c storeChoice) finding {
	if c.problem != nil {
		return finding{corev1alpha1.StoreSynced, metav1.ConditionFalse, c.problem.reason, c.problem.message}
	}
	is := func(reason, format string, args ...any) finding {
		return finding{corev1alpha1.StoreSynced, metav1.ConditionTrue, reason, fmt.Sprintf(format, args...)}
	}
	gone := lost(obs, c.id)
	before := meta.FindStatusCondition(in.Store.Status.Conditions, corev1alpha1.StoreSynced)
	switch {
	case before != nil && before.Status == metav1.ConditionTrue && strings.HasPrefix(before.Message, storeNamed(c.id)):
		return finding{corev1alpha1.StoreSynced, metav1.ConditionTrue, before.Reason, before.Message}
	case c.id == obs.Created && gone != "":
		return is(ReasonRecreated, "%s was created because OpenFGA no longer knew %s, whose content is lost", storeNamed(c.id), gone)
	case c.id == obs.Created:
		return is(ReasonCreated, "%s was created", storeNamed(c.id))
	case c.id == in.recorded():
		return is(ReasonRecorded, "%s is the one in status.storeId", storeNamed(c.id))
	case gone != "":
		return is(ReasonAdopted, "%s, which bears this name, was adopted because OpenFGA no longer knew %s", storeNamed(c.id), gone)
	default:
		return is(ReasonAdopted, "%s, which bears this name, existed and was adopted", storeNamed(c.id))
	}
}

func storeNamed(id string) string { return "OpenFGA store " + id }

// nameUnique warns of other OpenFGA stores of the same name; false while nobody has looked.
func nameUnique(in Input, obs Observed, id string) (finding, bool) {
	if !obs.Listed {
		return finding{}, false
	}
	others := slices.DeleteFunc(slices.Clone(obs.Named), func(s Store) bool { return s.ID == id })
	if len(others) == 0 {
		return finding{corev1alpha1.NameUnique, metav1.ConditionTrue, "Unique", "no other OpenFGA store bears this name"}, true
	}
	ids := make([]string, len(others))
	for i, s := range others {
		ids[i] = s.ID
	}
	return finding{corev1alpha1.NameUnique, metav1.ConditionFalse, "SeveralStores", fmt.Sprintf(
		"OpenFGA has %d more of the name %q: %s; %s is in use; delete the others if nobody needs them",
		len(others), in.Key.Name, enumerate(ids), storeNamed(id))}, true
}

// nameInSync tells of an OpenFGA store that bears another name; false while nobody has looked.
func nameInSync(in Input, obs Observed, id string) (finding, bool) {
	switch {
	case obs.bears(id), obs.Found.ID == id && (obs.Renamed || obs.Found.Name == in.Key.Name):
		return finding{corev1alpha1.NameInSync, metav1.ConditionTrue, "InSync", "the OpenFGA store bears this name"}, true
	case obs.Found.ID == id && obs.RenameErr != nil:
		return finding{corev1alpha1.NameInSync, metav1.ConditionFalse, "Unsupported", clip(fmt.Sprintf(
			"%s is named %q and cannot be renamed (%v); it works all the same", storeNamed(id), obs.Found.Name, obs.RenameErr))}, true
	}
	return finding{}, false
}
