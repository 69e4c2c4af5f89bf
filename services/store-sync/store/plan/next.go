package plan

import (
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// Verb is one kind of step.
type Verb string

// The steps of a pass.
const (
	// Settle ends the pass: write what the statuses lack.
	Settle Verb = "settle"
	// AddFinalizer puts ours on the Store, before anything is made that must be removed again.
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
	// LatestModel asks for the newest model of StoreID.
	LatestModel Verb = "read latest model"
	// WriteModel makes Model the newest of StoreID.
	WriteModel Verb = "write model"
	// DeleteStore deletes StoreID with everything in it.
	DeleteStore Verb = "delete store"
	// RemoveFinalizer lets the Store go.
	RemoveFinalizer Verb = "remove finalizer"
)

// Action is the next step of a pass.
type Action struct {
	Verb    Verb
	StoreID string
	Model   *openfgav1.AuthorizationModel
}

// Next is the one thing to do now. It asks for nothing that it knows, so a pass over a
// Store that is in step reads the latest model and settles.
func Next(in Input, f Facts) Action {
	switch {
	case in.Store == nil && in.Gone == nil:
		return Action{Verb: Settle}
	case in.Store == nil:
		return afterlife(in, f)
	case in.deleting():
		return deletion(in, f)
	case !finalized(in.Store, corev1alpha1.StoreFinalizer) && (in.NameErr == nil || in.recorded() != ""):
		return Action{Verb: AddFinalizer}
	}
	c := resolve(in, f)
	switch {
	case c.ask != "":
		return Action{Verb: c.ask}
	case c.problem != nil:
		return Action{Verb: Settle}
	}
	if a, ok := identify(in, f, c.id); ok {
		return a
	}
	return modelling(in, f, c.id)
}

// identify makes sure of the store itself: that it is recorded and, where that is not
// known, that it exists under the right name.
func identify(in Input, f Facts, id string) (Action, bool) {
	unknown := meta.FindStatusCondition(in.Store.Status.Conditions, corev1alpha1.NameUnique) == nil
	switch {
	case (in.Resync || unknown) && !f.Listed && f.Created != id:
		return Action{Verb: FindStores}, true
	case f.Listed && !f.exists(id):
		return Action{Verb: GetStore, StoreID: id}, true
	case f.Found.ID == id && f.Found.Name != in.Key.Name && !f.Renamed && f.RenameErr == nil:
		return Action{Verb: RenameStore, StoreID: id}, true
	case id != in.recorded():
		return Action{Verb: Record, StoreID: id}, true
	}
	return Action{}, false
}

// modelling makes the merged model the store's latest.
func modelling(in Input, f Facts, id string) Action {
	latest, known := f.latest(id)
	wanted := in.mergeErr() == nil && f.Refused == nil && f.Written == "" && !model.Equal(latest, in.Merged.Model)
	switch {
	case !known:
		return Action{Verb: LatestModel, StoreID: id}
	case (latest == nil || wanted) && !f.exists(id):
		return Action{Verb: GetStore, StoreID: id}
	case wanted:
		return Action{Verb: WriteModel, StoreID: id, Model: in.Merged.Model}
	}
	return Action{Verb: Settle}
}
