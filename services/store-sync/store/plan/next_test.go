package plan_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func resync(w *simulatedStore) { w.resync = true }

func edit(text string) func(*simulatedStore) {
	return func(w *simulatedStore) {
		w.store.Spec.CoreModule = text
		w.store.Generation++
	}
}

// loseOpenFGAData makes OpenFGA lose its data.
func loseOpenFGAData(w *simulatedStore) { w.fga = nil }

func deletedBehindOurBack(w *simulatedStore) { w.fga[0].deleted = true }

func renamed(w *simulatedStore) { w.fga[0].Name = "other" }

func TestNextActionFollowsState(t *testing.T) {
	tests := map[string]struct {
		given      []func(*simulatedStore)
		steps      []plan.ActionVerb
		conditions []string
		alive      []string
	}{
		"a new Store is created": {
			steps: []plan.ActionVerb{plan.AddFinalizer, plan.FindStores, plan.CreateStore, plan.Record, plan.WriteModel, plan.WriteStatus},
			conditions: []string{
				"StoreSynced=True/Created", "ModelSynced=True/Merged", "NameUnique=True/Unique", "NameInSync=True/InSync",
			},
			alive: []string{"id1"},
		},
		"a Store in step costs one read": {
			given:      []func(*simulatedStore){inStep},
			steps:      []plan.ActionVerb{plan.LatestModel, plan.WriteStatus},
			conditions: []string{"ModelSynced=True/Merged"},
			alive:      []string{"id1"},
		},
		"a resync also looks at the store itself": {
			given: []func(*simulatedStore){inStep, resync},
			steps: []plan.ActionVerb{plan.FindStores, plan.LatestModel, plan.WriteStatus},
			alive: []string{"id1"},
		},
		"a store of the name is adopted": {
			given:      []func(*simulatedStore){adoptStore, exists("other"), exists("demo", foreignModel())},
			steps:      []plan.ActionVerb{plan.AddFinalizer, plan.FindStores, plan.LatestModel, plan.Record, plan.WriteModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Adopted", "ModelSynced=True/Merged"},
			alive:      []string{"id1", "id2"},
		},
		"of several stores of the name the oldest is adopted": {
			given:      []func(*simulatedStore){exists("demo"), exists("demo")},
			steps:      []plan.ActionVerb{plan.AddFinalizer, plan.FindStores, plan.LatestModel, plan.Record, plan.WriteModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Adopted", "NameUnique=False/SeveralStores", "NameInSync=True/InSync"},
			alive:      []string{"id1", "id2"},
		},
		"of several stores of the name the recorded one wins": {
			given: []func(*simulatedStore){exists("demo"), exists("demo"), func(w *simulatedStore) { w.store.Status.StoreID = "id2" }},
			steps: []plan.ActionVerb{plan.AddFinalizer, plan.FindStores, plan.LatestModel, plan.WriteModel, plan.WriteStatus},
			conditions: []string{
				"StoreSynced=True/Recorded", "NameUnique=False/SeveralStores", "NameInSync=True/InSync", "ModelSynced=True/Merged",
			},
			alive: []string{"id1", "id2"},
		},
		"a store that is gone is noticed when tuples change": {
			given:      []func(*simulatedStore){inStep, deletedBehindOurBack, func(w *simulatedStore) { w.store.Generation++ }},
			steps:      []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.FindStores, plan.CreateStore, plan.Record, plan.WriteModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Recreated", "ModelSynced=True/Merged"},
			alive:      []string{"id3"},
		},
		"what a changed core says no more is withdrawn first": {
			given: []func(*simulatedStore){inStep, edit(core + "\ntype folder\n")},
			steps: []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.RecordLive, plan.WriteModel, plan.WriteStatus},
			alive: []string{"id1"},
		},
		"what a changed module says no more is withdrawn first": {
			given: []func(*simulatedStore){withModules(dsl("folder")), inStep, func(w *simulatedStore) { w.modules[0].Value.Spec.Model = dsl("group") }},
			steps: []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.RecordLive, plan.WriteModel, plan.WriteStatus},
			alive: []string{"id1"},
		},
		"who is evicted is told first": {
			given: []func(*simulatedStore){withModules(dsl("folder")), inStep, edit(core + "\ntype folder\n")},
			steps: []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.RecordLive, plan.WriteModel, plan.WriteStatus},
			alive: []string{"id1"},
		},
		"of a store that a person put into the status it is asked whether others bear the name": {
			given:      []func(*simulatedStore){inStep, exists("demo"), func(w *simulatedStore) { w.store.Status.StoreID = w.fga[1].ID }},
			steps:      []plan.ActionVerb{plan.FindStores, plan.LatestModel, plan.WriteModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Recorded", "NameUnique=False/SeveralStores"},
			alive:      []string{"id1", "id3"},
		},
		"another model in the store is replaced": {
			given: []func(*simulatedStore){inStep, func(w *simulatedStore) { w.fga[0].models = append(w.fga[0].models, foreignModel()) }},
			steps: []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.WriteModel, plan.WriteStatus},
			alive: []string{"id1"},
		},
		"a store that OpenFGA lost is made again": {
			given:      []func(*simulatedStore){inStep, loseOpenFGAData},
			steps:      []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.FindStores, plan.CreateStore, plan.Record, plan.WriteModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Recreated", "ModelSynced=True/Merged"},
			alive:      []string{"id3"},
		},
		"a store that somebody deleted is missed by a resync, although its model still answers": {
			given:      []func(*simulatedStore){inStep, deletedBehindOurBack, resync},
			steps:      []plan.ActionVerb{plan.FindStores, plan.GetStore, plan.CreateStore, plan.Record, plan.WriteModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Recreated"},
			alive:      []string{"id3"},
		},
		"no model is written into a store that somebody deleted": {
			given: []func(*simulatedStore){inStep, deletedBehindOurBack, withModules(dsl("folder"))},
			steps: []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.FindStores, plan.CreateStore, plan.Record, plan.WriteModel, plan.WriteStatus},
			alive: []string{"id3"},
		},
		"a lost store is replaced by another of the name": {
			given:      []func(*simulatedStore){inStep, loseOpenFGAData, exists("demo")},
			steps:      []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.FindStores, plan.LatestModel, plan.Record, plan.WriteModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Adopted"},
			alive:      []string{"id3"},
		},
		"a name that drifted and cannot be mended does not block": {
			given:      []func(*simulatedStore){inStep, renamed, resync},
			steps:      []plan.ActionVerb{plan.FindStores, plan.GetStore, plan.RenameStore, plan.LatestModel, plan.WriteStatus},
			conditions: []string{"NameInSync=False/Unsupported", "NameUnique=True/Unique"},
			alive:      []string{"id1"},
		},
		"a name that drifted is mended by a server that can": {
			given:      []func(*simulatedStore){inStep, renamed, resync, func(w *simulatedStore) { w.noRename = nil }},
			steps:      []plan.ActionVerb{plan.FindStores, plan.GetStore, plan.RenameStore, plan.LatestModel, plan.WriteStatus},
			conditions: []string{"NameInSync=True/InSync"},
			alive:      []string{"id1"},
		},
		"a name that OpenFGA refuses costs no call": {
			given:      []func(*simulatedStore){func(w *simulatedStore) { w.name = "ab" }, withModules(dsl("folder"))},
			steps:      []plan.ActionVerb{plan.WriteStatus},
			conditions: []string{"StoreSynced=False/InvalidName", "ModelSynced=False/NoStore", "m00:Merged=False/NoStore"},
		},
		"a core module that cannot be read leaves the last good model": {
			given:      []func(*simulatedStore){inStep, edit(typo)},
			steps:      []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Created", "ModelSynced=False/InvalidCore", "ModulesInSync=False/LastGoodLive"},
			alive:      []string{"id1"},
		},
		"what a core module that does not validate no longer has leaves the model": {
			given:      []func(*simulatedStore){inStep, edit(broken)},
			steps:      []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.RecordLive, plan.WriteModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Created", "ModelSynced=False/InvalidCore"},
			alive:      []string{"id1"},
		},
		"an empty core module gets a store and no model": {
			given:      []func(*simulatedStore){edit("")},
			steps:      []plan.ActionVerb{plan.AddFinalizer, plan.FindStores, plan.CreateStore, plan.Record, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Created", "ModelSynced=False/InvalidCore"},
			alive:      []string{"id1"},
		},
		"a core module without types gets a store and no model": {
			given:      []func(*simulatedStore){edit("module core\n"), withModules("module m\n")},
			steps:      []plan.ActionVerb{plan.AddFinalizer, plan.FindStores, plan.CreateStore, plan.Record, plan.WriteStatus},
			conditions: []string{"ModelSynced=False/InvalidCore", "m00:Merged=False/InvalidCore"},
			alive:      []string{"id1"},
		},
		"a broken module is left out and the rest lives": {
			given: []func(*simulatedStore){withModules(dsl("folder"), "type x", "", dsl("folder")+"  # again\n    define writer: [user]\n")},
			steps: []plan.ActionVerb{plan.AddFinalizer, plan.FindStores, plan.CreateStore, plan.Record, plan.WriteModel, plan.WriteStatus},
			conditions: []string{
				"ModelSynced=True/ModulesRejected", "m00:Merged=True/Merged", "m01:Merged=False/Rejected",
				"m02:Merged=False/Rejected", "m03:Merged=False/Rejected",
			},
			alive: []string{"id1"},
		},
		"a module that there is no room for waits": {
			given:      []func(*simulatedStore){inStep, withModules(dsl("folder")), func(w *simulatedStore) { w.limits = model.Limits{Types: 2} }},
			steps:      []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.WriteStatus},
			conditions: []string{"ModelSynced=True/ModulesRejected", "ModulesInSync=False/Rejected", "m00:Merged=False/LimitExceeded"},
			alive:      []string{"id1"},
		},
		"a core module that there is no room for leaves the one before": {
			given:      []func(*simulatedStore){inStep, edit(core + "\ntype more\n"), func(w *simulatedStore) { w.limits = model.Limits{Types: 2} }},
			steps:      []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.WriteStatus},
			conditions: []string{"ModelSynced=False/InvalidCore", "ModulesInSync=False/LastGoodLive"},
			alive:      []string{"id1"},
		},
		"a model that OpenFGA refuses after all is told": {
			given:      []func(*simulatedStore){func(w *simulatedStore) { w.refuse = errors.New("too clever by half") }},
			steps:      []plan.ActionVerb{plan.AddFinalizer, plan.FindStores, plan.CreateStore, plan.Record, plan.WriteModel, plan.WriteStatus},
			conditions: []string{"ModelSynced=False/ModelRefused"},
			alive:      []string{"id1"},
		},
		"an AuthorizationModel of no Store waits": {
			given:      []func(*simulatedStore){withModules(dsl("folder")), func(w *simulatedStore) { w.store = nil }},
			steps:      []plan.ActionVerb{plan.WriteStatus},
			conditions: []string{"m00:Merged=False/StoreNotFound"},
		},
		"a store that another Store has is not shared": {
			given:      []func(*simulatedStore){exists("demo"), addCompetingStore("east", "id1", time.Hour)},
			steps:      []plan.ActionVerb{plan.AddFinalizer, plan.FindStores, plan.WriteStatus},
			conditions: []string{"StoreSynced=False/Claimed", "ModelSynced=False/NoStore"},
			alive:      []string{"id1"},
		},
		"of two Stores that adopted one store the younger yields": {
			given:      []func(*simulatedStore){inStep, addCompetingStore("east", "id1", time.Hour)},
			steps:      []plan.ActionVerb{plan.FindStores, plan.WriteStatus},
			conditions: []string{"StoreSynced=False/Claimed"},
			alive:      []string{"id1"},
		},
		"of two Stores that adopted one store the older stays": {
			given:      []func(*simulatedStore){inStep, addCompetingStore("east", "id1", -time.Hour)},
			steps:      []plan.ActionVerb{plan.LatestModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Created"},
			alive:      []string{"id1"},
		},
		"an older Store that records the same id does not get the store of this name": {
			given:      []func(*simulatedStore){inStep, addStoreRecordingSameID("thief", "id1", time.Hour)},
			steps:      []plan.ActionVerb{plan.GetStore, plan.LatestModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Created"},
			alive:      []string{"id1"},
		},
		"a Store that records the id of a store of another Store's name yields, although it is older": {
			given:      []func(*simulatedStore){exists("victim"), records("id1"), addStoreRecordingSameID("victim", "id1", -time.Hour)},
			steps:      []plan.ActionVerb{plan.AddFinalizer, plan.GetStore, plan.FindStores, plan.CreateStore, plan.Record, plan.WriteModel, plan.WriteStatus},
			conditions: []string{"StoreSynced=True/Created"},
			alive:      []string{"id1", "id2"},
		},
		"of two Stores of one age the first in order stays": {
			given: []func(*simulatedStore){inStep, addCompetingStore("zulu", "id1", 0)},
			steps: []plan.ActionVerb{plan.LatestModel, plan.WriteStatus},
			alive: []string{"id1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newSimulatedStore(test.given...)
			w.pass(1000)
			if !slices.Equal(w.verbs, test.steps) {
				t.Errorf("steps\n  %v, want\n  %v", w.verbs, test.steps)
			}
			w.expectConditions(t, test.conditions...)
			if got := w.alive(); !slices.Equal(got, test.alive) {
				t.Errorf("stores in OpenFGA: %v, want %v", got, test.alive)
			}
			before := w.writes
			if w.pass(1000); w.writes != before {
				t.Errorf("the next pass wrote %d times: %v", w.writes-before, w.verbs)
			}
		})
	}
}

// records makes the Store record an OpenFGA store.
func records(id string) func(*simulatedStore) {
	return func(w *simulatedStore) { w.store.Status.StoreID = id }
}

// held puts our finalizer on the Store.
func held(w *simulatedStore) { w.store.Finalizers = []string{corev1alpha1.StoreFinalizer} }

func deleting(w *simulatedStore) {
	now := metav1.NewTime(time.Unix(2000, 0))
	w.store.DeletionTimestamp = &now
}

func retained(w *simulatedStore) { w.store.Spec.DeletionPolicy = corev1alpha1.DeletionRetain }

func tuplesHeld(w *simulatedStore) {
	w.store.Finalizers = append(w.store.Finalizers, corev1alpha1.TuplesFinalizer)
}

// forced deletes the Store from Kubernetes without waiting for our finalizer.
func forced(w *simulatedStore) { w.gone, w.store = w.store, nil }

// currentCondition adds an earlier Store with the name of the vanished one.
func currentCondition(id string) func(*simulatedStore) {
	return func(w *simulatedStore) {
		o := w.gone.DeepCopy()
		o.Status.StoreID = id
		w.earlier = append(w.earlier, o)
	}
}

// unfinished removes a Store before its first pass.
func unfinished(w *simulatedStore) {
	w.gone = &corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
}

// unrecorded ends a pass between the creation of the store and the record of its id.
func unrecorded(w *simulatedStore) { w.pass(3) }

func TestNextDeletionActionOrder(t *testing.T) {
	tests := map[string]struct {
		given      []func(*simulatedStore)
		steps      []plan.ActionVerb
		conditions []string
		alive      []string
	}{
		"dependents block": {
			given:      []func(*simulatedStore){withModules(dsl("folder")), inStep, tuplesHeld, deleting},
			steps:      []plan.ActionVerb{plan.WriteStatus},
			conditions: []string{"Deleting=True/Blocked", "m00:Merged=True/Merged"},
			alive:      []string{"id1"},
		},
		"a module that comes too late is told so": {
			given:      []func(*simulatedStore){inStep, deleting, withModules(dsl("folder"))},
			steps:      []plan.ActionVerb{plan.WriteStatus},
			conditions: []string{"Deleting=True/Blocked", "m00:Merged=False/StoreDeleting"},
			alive:      []string{"id1"},
		},
		"then tuples": {
			given:      []func(*simulatedStore){inStep, tuplesHeld, deleting},
			steps:      []plan.ActionVerb{plan.WriteStatus},
			conditions: []string{"Deleting=True/WaitingForTuples"},
			alive:      []string{"id1"},
		},
		"then the OpenFGA store, then the Store": {
			given: []func(*simulatedStore){inStep, deleting},
			steps: []plan.ActionVerb{plan.GetStore, plan.DeleteStore, plan.RemoveFinalizer, plan.WriteStatus},
		},
		"Retain keeps the OpenFGA store": {
			given: []func(*simulatedStore){inStep, retained, deleting},
			steps: []plan.ActionVerb{plan.RemoveFinalizer, plan.WriteStatus},
			alive: []string{"id1"},
		},
		"a store that another Store has stays": {
			given: []func(*simulatedStore){inStep, addCompetingStore("east", "id1", -time.Hour), deleting},
			steps: []plan.ActionVerb{plan.RemoveFinalizer, plan.WriteStatus},
			alive: []string{"id1"},
		},
		"a store that bears the name of another Store stays": {
			given: []func(*simulatedStore){exists("victim"), records("id1"), held, removeProofOfOwnership, deleting},
			steps: []plan.ActionVerb{plan.RemoveFinalizer, plan.WriteStatus},
			alive: []string{"id1"},
		},
		"a Store that we never held is none of our business": {
			given: []func(*simulatedStore){exists("demo"), deleting},
			steps: []plan.ActionVerb{plan.WriteStatus},
			alive: []string{"id1"},
		},
		"a store that a dead pass made and did not record goes too": {
			given: []func(*simulatedStore){unrecorded, deleting},
			steps: []plan.ActionVerb{plan.FindStores, plan.LatestModel, plan.DeleteStore, plan.RemoveFinalizer, plan.WriteStatus},
		},
		"a store of the name with a model is somebody's": {
			given: []func(*simulatedStore){exists("demo", foreignModel()), func(w *simulatedStore) { w.pass(1) }, deleting},
			steps: []plan.ActionVerb{plan.FindStores, plan.LatestModel, plan.RemoveFinalizer, plan.WriteStatus},
			alive: []string{"id1"},
		},
		"a Store that OpenFGA refused goes at once": {
			given: []func(*simulatedStore){func(w *simulatedStore) { w.name = "ab"; w.store.Finalizers = []string{corev1alpha1.StoreFinalizer} }, deleting},
			steps: []plan.ActionVerb{plan.RemoveFinalizer, plan.WriteStatus},
		},
		"a Store deleted past our finalizer takes its store along": {
			given: []func(*simulatedStore){inStep, forced},
			steps: []plan.ActionVerb{plan.GetStore, plan.DeleteStore, plan.WriteStatus},
		},
		"a Store that we let go is only looked at": {
			given: []func(*simulatedStore){inStep, deletedBehindOurBack, forced},
			steps: []plan.ActionVerb{plan.GetStore, plan.WriteStatus},
		},
		"nor is the store forgotten when others had the name after it": {
			given: []func(*simulatedStore){inStep, forced, currentCondition("id1"), unfinished},
			steps: []plan.ActionVerb{plan.GetStore, plan.DeleteStore, plan.WriteStatus},
		},
		"each who had the name takes its own along": {
			given: []func(*simulatedStore){exists("other"), exists("more"), inStep, forced, currentCondition("id9"), currentCondition("id1")},
			steps: []plan.ActionVerb{plan.GetStore, plan.DeleteStore, plan.GetStore, plan.GetStore, plan.DeleteStore, plan.WriteStatus},
			alive: []string{"id2"},
		},
		"Retain holds for a Store deleted past our finalizer": {
			given: []func(*simulatedStore){inStep, retained, forced},
			steps: []plan.ActionVerb{plan.WriteStatus},
			alive: []string{"id1"},
		},
		"a namesake elsewhere inherits the store": {
			given: []func(*simulatedStore){inStep, addCompetingStore("east", "", 0), forced},
			steps: []plan.ActionVerb{plan.WriteStatus},
			alive: []string{"id1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newSimulatedStore(test.given...)
			w.verbs = nil
			w.pass(1000)
			if !slices.Equal(w.verbs, test.steps) {
				t.Errorf("steps\n  %v, want\n  %v", w.verbs, test.steps)
			}
			w.expectConditions(t, test.conditions...)
			if got := w.alive(); !slices.Equal(got, test.alive) {
				t.Errorf("stores in OpenFGA: %v, want %v", got, test.alive)
			}
		})
	}
}

func TestStoreWithTuplesGetsBothFinalizers(t *testing.T) {
	s := newSimulatedStore().store
	if got := plan.RequiredFinalizers(s); !slices.Equal(got, []string{corev1alpha1.StoreFinalizer}) {
		t.Errorf("held by %v", got)
	}
	s.Spec.Tuples = []corev1alpha1.Tuple{{Object: "document:1", Relation: "owner", User: "user:1"}}
	if got := plan.RequiredFinalizers(s); !slices.Equal(got, []string{corev1alpha1.StoreFinalizer, corev1alpha1.TuplesFinalizer}) {
		t.Errorf("with tuples, held by %v", got)
	}
}
