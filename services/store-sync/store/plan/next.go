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

// Verb names a kind of action.
type Verb string

// These are the actions of a pass.
const (
	// WriteStatus ends the pass: it writes what the statuses lack.
	WriteStatus Verb = "write status"
	// AddFinalizer adds [Finalizers] to the Store, before anything is created that must be removed again.
	AddFinalizer Verb = "add finalizer"
	// FindStores lists all OpenFGA stores with the Store's name.
	FindStores Verb = "find stores"
	// CreateStore creates an OpenFGA store with the Store's name.
	CreateStore Verb = "create store"
	// GetStore reads StoreID from OpenFGA, to find out whether it exists.
	GetStore Verb = "get store"
	// RenameStore gives StoreID the Store's name.
	RenameStore Verb = "rename store"
	// Record writes the id to the Store's status, before a model makes the OpenFGA store worth keeping.
	Record Verb = "record store"
	// RecordLive writes the new live texts to statuses before a model that removes something. It also clears the
	// digests of texts that are no longer in the model.
	RecordLive Verb = "record live texts"
	// LatestModel reads the newest model of StoreID.
	LatestModel Verb = "read latest model"
	// FindOwners reads from the tuples in StoreID to which cluster it belongs. Only the IAM store needs it.
	FindOwners Verb = "find owners"
	// WriteModel makes Model the newest model of StoreID.
	WriteModel Verb = "write model"
	// DeleteStore deletes StoreID with everything in it.
	DeleteStore Verb = "delete store"
	// RemoveFinalizer removes our finalizer from the Store.
	RemoveFinalizer Verb = "remove finalizer"
)

// ChangesFinalizer reports whether an action changes our finalizer.
func (v Verb) ChangesFinalizer() bool { return v == AddFinalizer || v == RemoveFinalizer }

// Action is the next step of a pass.
type Action struct {
	Verb    Verb
	StoreID string
	Model   *openfgav1.AuthorizationModel
}

// NeedsSnapshot reports whether [Next] needs a new snapshot of the view after the action.
func (a Action) NeedsSnapshot() bool {
	switch a.Verb {
	case AddFinalizer, RemoveFinalizer, Record, RecordLive: // The objects themselves have changed.
		return true
	default:
		return a.Verb == FindStores // Other Stores may own the OpenFGA stores that were found.
	}
}

// Next returns the next action. It never reads what is already observed. A pass over a Store in step reads only the
// latest model.
func Next(in Input, obs Observed) Action {
	switch {
	case in.Store == nil && in.Gone == nil:
		return Action{Verb: WriteStatus}
	case in.Store == nil:
		return cleanUp(in, obs)
	case in.isDeleting():
		return nextDeletion(in, obs)
	case !hasFinalizer(in.Store, corev1alpha1.StoreFinalizer) && (in.NameErr == nil || in.recordedID() != ""):
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

// syncStore returns the next action for the OpenFGA store itself, if any. It must be recorded and, where that is
// unknown, exist under the right name.
func syncStore(in Input, obs Observed, id string) (Action, bool) {
	synced, _ := conditionBefore(in, corev1alpha1.StoreSynced) // The condition may be about another OpenFGA store, if a user changed the id.
	unknown := meta.FindStatusCondition(in.Store.Status.Conditions, corev1alpha1.NameUnique) == nil || !strings.HasPrefix(synced.Message, storeNamed(id))
	switch {
	case (in.Resync || unknown) && !obs.Listed && obs.Created != id:
		return Action{Verb: FindStores}, true
	case obs.Listed && !obs.isConfirmed(id):
		return Action{Verb: GetStore, StoreID: id}, true
	case obs.Found.ID == id && obs.Found.Name != in.Key.Name && !obs.Renamed && obs.RenameErr == nil:
		return Action{Verb: RenameStore, StoreID: id}, true
	case id != in.recordedID():
		return Action{Verb: Record, StoreID: id}, true
	}
	return Action{}, false
}

// syncModel returns the next action that makes the merged model the latest one.
func syncModel(in Input, obs Observed, id string) Action {
	latest, known := obs.latestModel(id)
	wanted := in.mergeErr() == nil && obs.Refused == nil && !model.Equal(latest, in.Merged.Model)
	switch {
	case !known:
		return Action{Verb: LatestModel, StoreID: id}
	case (latest == nil || wanted || in.hasNews()) && !obs.isConfirmed(id):
		return Action{Verb: GetStore, StoreID: id}
	case in.mustReadOwners(obs, id, wanted):
		return Action{Verb: FindOwners, StoreID: id}
	case in.alienReason(obs, id) != "":
		return Action{Verb: WriteStatus}
	case wanted && (in.isTaking() || len(in.Outdated()) > 0):
		return Action{Verb: RecordLive, StoreID: id}
	case wanted:
		return Action{Verb: WriteModel, StoreID: id, Model: in.Merged.Model}
	}
	return Action{Verb: WriteStatus}
}

// hasNews reports whether an object has a generation that no condition of store-sync covers, and no true Ready of
// tuple-sync. The change will be written to the OpenFGA store, so that must exist.
func (in Input) hasNews() bool {
	changed := func(o metav1.Object, conditions []metav1.Condition, typ string) bool {
		ready := meta.IsStatusConditionTrue(conditions, corev1alpha1.Ready) && isCurrent(o, conditions, corev1alpha1.Ready)
		return !ready && !isCurrent(o, conditions, typ)
	}
	return changed(in.Store, in.Store.Status.Conditions, corev1alpha1.ModelSynced) || slices.ContainsFunc(in.Modules, func(m Module) bool {
		return changed(m.Value, m.Value.Status.Conditions, corev1alpha1.Merged)
	})
}
