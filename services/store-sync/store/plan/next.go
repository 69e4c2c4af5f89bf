package plan

import (
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// Verb is one kind of step.
type Verb string

// The steps of a pass.
const (
	// WriteStatus ends the pass: write what the statuses lack.
	WriteStatus Verb = "write status"
	// AddFinalizer puts [Finalizers] on the Store, before anything is made that must be removed again.
	AddFinalizer Verb = "add finalizer"
	// FindStores asks for all stores of the Store's name.
	FindStores Verb = "find stores"
	// CreateStore makes a store of the Store's name.
	CreateStore Verb = "create store"
	// GetStore asks whether StoreID exists.
	GetStore Verb = "get store"
	// RenameStore gives StoreID the Store's name.
	RenameStore Verb = "rename store"
	// Record writes the id to the Store's status, before a model makes the store precious.
	Record Verb = "record store"
	// RecordLive writes to statuses what is live from now on, before a model that takes something away, and takes back
	// the digests of texts that the model has no more.
	RecordLive Verb = "record live texts"
	// LatestModel asks for the newest model of StoreID.
	LatestModel Verb = "read latest model"
	// FindOwners asks whose StoreID is by the tuples in it, which is asked of the IAM store alone.
	FindOwners Verb = "find owners"
	// WriteModel makes Model the newest of StoreID.
	WriteModel Verb = "write model"
	// DeleteStore deletes StoreID with everything in it.
	DeleteStore Verb = "delete store"
	// RemoveFinalizer lets the Store go.
	RemoveFinalizer Verb = "remove finalizer"
)

// Finalizes reports whether a step is about our finalizer.
func (v Verb) Finalizes() bool { return v == AddFinalizer || v == RemoveFinalizer }

// Action is the next step of a pass.
type Action struct {
	Verb    Verb
	StoreID string
	Model   *openfgav1.AuthorizationModel
}

// Renews reports whether the view holds more after the action that [Next] must know.
func (a Action) Renews() bool {
	switch a.Verb {
	case AddFinalizer, RemoveFinalizer, Record, RecordLive: // The objects themselves have changed.
		return true
	default:
		return a.Verb == FindStores // Other Stores may have those that were found.
	}
}

// Next is the one thing to do now. It asks for nothing that is known, so a pass over a
// Store that is in step reads the latest model, and no more.
func Next(in Input, obs Observed) Action {
	switch {
	case in.Store == nil && in.Gone == nil:
		return Action{Verb: WriteStatus}
	case in.Store == nil:
		return cleanUp(in, obs)
	case in.deleting():
		return deletion(in, obs)
	case !finalized(in.Store, corev1alpha1.StoreFinalizer) && (in.NameErr == nil || in.recorded() != ""):
		return Action{Verb: AddFinalizer}
	}
	c := chooseStore(in, obs)
	switch {
	case c.ask.Verb != "":
		return c.ask
	case c.problem != nil:
		return Action{Verb: WriteStatus}
	}
	if a, ok := syncStore(in, obs, c.id); ok {
		return a
	}
	return syncModel(in, obs, c.id)
}

// syncStore makes sure of the store itself: that it is recorded and, where that is not
// known, that it exists under the right name.
func syncStore(in Input, obs Observed, id string) (Action, bool) {
	synced, _ := before(in, corev1alpha1.StoreSynced) // It may be about another store, that a person replaced in the status.
	unknown := meta.FindStatusCondition(in.Store.Status.Conditions, corev1alpha1.NameUnique) == nil || !strings.HasPrefix(synced.Message, storeNamed(id))
	switch {
	case (in.Resync || unknown) && !obs.Listed && obs.Created != id:
		return Action{Verb: FindStores}, true
	case obs.Listed && !obs.exists(id):
		return Action{Verb: GetStore, StoreID: id}, true
	case obs.Found.ID == id && obs.Found.Name != in.Key.Name && !obs.Renamed && obs.RenameErr == nil:
		return Action{Verb: RenameStore, StoreID: id}, true
	case id != in.recorded():
		return Action{Verb: Record, StoreID: id}, true
	}
	return Action{}, false
}

// syncModel makes the merged model the store's latest.
func syncModel(in Input, obs Observed, id string) Action {
	latest, known := obs.latest(id)
	wanted := in.mergeErr() == nil && obs.Refused == nil && !model.Equal(latest, in.Merged.Model)
	switch {
	case !known:
		return Action{Verb: LatestModel, StoreID: id}
	case (latest == nil || wanted || in.news()) && !obs.exists(id):
		return Action{Verb: GetStore, StoreID: id}
	case in.asksOwners(obs, id, wanted):
		return Action{Verb: FindOwners, StoreID: id}
	case in.alien(obs, id) != "":
		return Action{Verb: WriteStatus}
	case wanted && (in.takes() || len(in.Outdated()) > 0):
		return Action{Verb: RecordLive, StoreID: id}
	case wanted:
		return Action{Verb: WriteModel, StoreID: id, Model: in.Merged.Model}
	}
	return Action{Verb: WriteStatus}
}

// news reports whether an object has changed since something was said of it, here or by tuple-sync at the end: then
// whatever is done about that goes into the store, which must be there.
func (in Input) news() bool {
	changed := func(o metav1.Object, conditions []metav1.Condition, typ string) bool {
		ready := meta.IsStatusConditionTrue(conditions, corev1alpha1.Ready) && speaks(o, conditions, corev1alpha1.Ready)
		return !ready && !speaks(o, conditions, typ)
	}
	return changed(in.Store, in.Store.Status.Conditions, corev1alpha1.ModelSynced) || slices.ContainsFunc(in.Modules, func(m Module) bool {
		return changed(m.Value, m.Value.Status.Conditions, corev1alpha1.Merged)
	})
}
