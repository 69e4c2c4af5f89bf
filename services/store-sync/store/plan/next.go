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

// ActionVerb names a kind of action.
type ActionVerb string

// These are the actions of a pass.
const (
	// WriteStatus ends the pass: it writes what the statuses lack.
	WriteStatus ActionVerb = "write status"
	// AddFinalizer adds [RequiredFinalizers] to the Store, before anything is created that must be removed again.
	AddFinalizer ActionVerb = "add finalizer"
	// FindStores lists all OpenFGA stores with the Store's name.
	FindStores ActionVerb = "find stores"
	// CreateStore creates an OpenFGA store with the Store's name.
	CreateStore ActionVerb = "create store"
	// GetStore reads StoreID from OpenFGA, to find out whether it exists.
	GetStore ActionVerb = "get store"
	// RenameStore gives StoreID the Store's name.
	RenameStore ActionVerb = "rename store"
	// Record writes the id to the Store's status, before a model makes the OpenFGA store worth keeping.
	Record ActionVerb = "record store"
	// RecordLive writes the new live texts to statuses before a model that removes something. It also clears the
	// digests of texts that are no longer in the model.
	RecordLive ActionVerb = "record live texts"
	// LatestModel reads the newest model of StoreID.
	LatestModel ActionVerb = "read latest model"
	// FindOwners reads from the tuples in StoreID to which cluster it belongs. Only the IAM store needs it.
	FindOwners ActionVerb = "find owners"
	// WriteModel makes Model the newest model of StoreID.
	WriteModel ActionVerb = "write model"
	// DeleteStore deletes StoreID with everything in it.
	DeleteStore ActionVerb = "delete store"
	// RemoveFinalizer removes our finalizer from the Store.
	RemoveFinalizer ActionVerb = "remove finalizer"
)

// ChangesFinalizer reports whether an action changes our finalizer.
func (v ActionVerb) ChangesFinalizer() bool { return v == AddFinalizer || v == RemoveFinalizer }

// Action is the next step of a pass.
type Action struct {
	Verb    ActionVerb
	StoreID string
	Model   *openfgav1.AuthorizationModel
}

// NeedsSnapshot reports whether [NextAction] needs a new snapshot of the informer after the action.
func (a Action) NeedsSnapshot() bool {
	switch a.Verb {
	case AddFinalizer, RemoveFinalizer, Record, RecordLive: // The objects themselves have changed.
		return true
	default:
		return a.Verb == FindStores // Other Stores may own the OpenFGA stores that were found.
	}
}

// NextAction returns the next action. It never reads what is already observed. A pass over a Store in step reads only the
// latest model.
func NextAction(in Input, obs Observed) Action {
	switch {
	case in.Store == nil && in.Gone == nil:
		return Action{Verb: WriteStatus}
	case in.Store == nil:
		return nextCleanupAction(in, obs)
	case in.isDeleting():
		return nextDeletionAction(in, obs)
	case !hasFinalizer(in.Store, corev1alpha1.StoreFinalizer) && (in.NameErr == nil || in.recordedStoreID() != ""):
		return Action{Verb: AddFinalizer}
	}
	c := chooseOpenFGAStore(in, obs)
	switch {
	case c.ask.Verb != "":
		return c.ask
	case c.problem != nil:
		return Action{Verb: WriteStatus}
	}
	if a, ok := nextStoreAction(in, obs, c.id); ok {
		return a
	}
	return nextModelAction(in, obs, c.id)
}

// nextStoreAction returns the next action for the OpenFGA store itself, if any. It must be recorded and, where that is
// unknown, exist under the right name.
func nextStoreAction(in Input, obs Observed, id string) (Action, bool) {
	synced, _ := currentCondition(in, corev1alpha1.StoreSynced) // The condition may be about another OpenFGA store, if a user changed the id.
	unknown := meta.FindStatusCondition(in.Store.Status.Conditions, corev1alpha1.NameUnique) == nil || !strings.HasPrefix(synced.Message, describeStore(id))
	switch {
	case (in.Resync || unknown) && !obs.Listed && obs.Created != id:
		return Action{Verb: FindStores}, true
	case obs.Listed && !obs.isConfirmedInOpenFGA(id):
		return Action{Verb: GetStore, StoreID: id}, true
	case obs.Found.ID == id && obs.Found.Name != in.Key.Name && !obs.Renamed && obs.RenameErr == nil:
		return Action{Verb: RenameStore, StoreID: id}, true
	case id != in.recordedStoreID():
		return Action{Verb: Record, StoreID: id}, true
	}
	return Action{}, false
}

// nextModelAction returns the next action that makes the merged model the latest one.
func nextModelAction(in Input, obs Observed, id string) Action {
	latest, known := obs.latestModel(id)
	wanted := in.mergeErr() == nil && obs.Refused == nil && !model.Equal(latest, in.Merged.Model)
	switch {
	case !known:
		return Action{Verb: LatestModel, StoreID: id}
	case (latest == nil || wanted || in.hasUnreportedGeneration()) && !obs.isConfirmedInOpenFGA(id):
		return Action{Verb: GetStore, StoreID: id}
	case in.mustReadOwners(obs, id, wanted):
		return Action{Verb: FindOwners, StoreID: id}
	case in.foreignStoreReason(obs, id) != "":
		return Action{Verb: WriteStatus}
	case wanted && (in.removesAnyLivePart() || len(in.OutdatedDigestKeys()) > 0):
		return Action{Verb: RecordLive, StoreID: id}
	case wanted:
		return Action{Verb: WriteModel, StoreID: id, Model: in.Merged.Model}
	}
	return Action{Verb: WriteStatus}
}

// hasUnreportedGeneration reports whether an object has a generation that no condition of store-sync covers, and no true Ready of
// tuple-sync. The change will be written to the OpenFGA store, so that must exist.
func (in Input) hasUnreportedGeneration() bool {
	changed := func(o metav1.Object, conditions []metav1.Condition, typ string) bool {
		ready := meta.IsStatusConditionTrue(conditions, corev1alpha1.Ready) && coversCurrentGeneration(o, conditions, corev1alpha1.Ready)
		return !ready && !coversCurrentGeneration(o, conditions, typ)
	}
	return changed(in.Store, in.Store.Status.Conditions, corev1alpha1.ModelSynced) || slices.ContainsFunc(in.Modules, func(m ModelObject) bool {
		return changed(m.Value, m.Value.Status.Conditions, corev1alpha1.Merged)
	})
}
