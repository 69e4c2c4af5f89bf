package plan_test

import (
	"slices"
	"strings"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// ownOwnerTuple is the tuple by which the IAM store demo belongs to this cluster.
func ownOwnerTuple() iam.Tuple { return iam.StoreOwnerTuple("demo", "this") }

// makeIAMStore makes the Store the IAM store as store-sync does.
func makeIAMStore(w *simulatedStore) { w.protecting, w.store.Spec.Tuples = true, declared() }

func declared() []corev1alpha1.Tuple {
	return []corev1alpha1.Tuple{{User: ownOwnerTuple().User, Relation: ownOwnerTuple().Relation, Object: ownOwnerTuple().Object}}
}

// undeclared removes the owner's tuple from the Store, as a later generation.
func undeclared(w *simulatedStore) {
	w.store.Spec.Tuples, w.store.Generation = nil, w.store.Generation+1
}

// writeForeignModel makes another owner write a model to the Store's OpenFGA store.
func writeForeignModel(w *simulatedStore) {
	w.find("id1").models = append(w.find("id1").models, foreignModel())
}

func owned(named ...iam.Tuple) func(*simulatedStore) {
	return func(w *simulatedStore) { w.owners = plan.IAMStoreOwnerTuples{Owner: ownOwnerTuple(), Named: named} }
}

// recorded makes the Store's status name a store of another owner.
func recorded(w *simulatedStore) {
	exists("demo", foreignModel())(w)
	makeStoreYounger(w)
	w.store.Status.StoreID = "id1"
}

// A model decides about all tuples in the store, so it must not be written over another owner's tuples.
func TestIAMModelRequiresOwnership(t *testing.T) {
	another := owned(ownOwnerTuple(), iam.StoreOwnerTuple("permissions", "2"))
	nobody := func(w *simulatedStore) {
		w.owners = plan.IAMStoreOwnerTuples{Owner: ownOwnerTuple(), Granted: "a/Thing:1#owner@a/User:1"}
	}
	longer := edit(core + "\ntype folder\n")
	for name, test := range map[string]struct {
		given   []func(*simulatedStore)
		written bool
		// want is the condition Adopted, "" if it is missing.
		want string
	}{
		"one that was made here":                          {[]func(*simulatedStore){makeIAMStore}, true, "True/Ours"},
		"one that names us":                               {[]func(*simulatedStore){makeIAMStore, inStep, owned(ownOwnerTuple()), writeForeignModel}, true, "True/Ours"},
		"one that names another":                          {[]func(*simulatedStore){makeIAMStore, inStep, another, longer}, false, "False/NotAdopted"},
		"and has another's model":                         {[]func(*simulatedStore){makeIAMStore, inStep, another, writeForeignModel}, false, "False/NotAdopted"},
		"and is taken":                                    {[]func(*simulatedStore){makeIAMStore, inStep, another, longer, adoptStore}, true, "True/Taken"},
		"one that names nobody, and has tuples":           {[]func(*simulatedStore){makeIAMStore, recorded, nobody}, false, "False/NotAdopted"},
		"and was found to be ours":                        {[]func(*simulatedStore){makeIAMStore, inStep, nobody, writeForeignModel}, true, "True/Ours"},
		"one that names nobody, and has no tuples of IAM": {[]func(*simulatedStore){makeIAMStore, inStep, owned(), writeForeignModel}, true, "True/Ours"},
		"one that no Store declares any more":             {[]func(*simulatedStore){makeIAMStore, inStep, owned(ownOwnerTuple()), undeclared, writeForeignModel}, false, "False/NotAdopted"},
		"one that was made by hand, and is not declared":  {[]func(*simulatedStore){makeIAMStore, undeclared, inStep, owned(), writeForeignModel}, false, "False/NotAdopted"},
		"one that is not IAM's":                           {[]func(*simulatedStore){inStep, another, longer}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSimulatedStore(test.given...)
			w.pass(1000)
			if written := slices.Contains(w.verbs, plan.WriteModel); written != test.written {
				t.Errorf("a model is written: %v, want %v, by %v", written, test.written, w.verbs)
			}
			if test.want != "" {
				w.expectConditions(t, "Adopted="+test.want)
			} else if slices.Contains(w.verbs, plan.FindOwners) || w.message(corev1alpha1.Adopted) != "" {
				t.Errorf("of a Store that is not IAM's it is asked whose it is: %v", w.verbs)
			}
			if test.written {
				w.expectConditions(t, "ModelSynced=True/Merged")
				return
			}
			w.expectConditions(t, "ModelSynced=False/NotAdopted")
			if m := w.message(corev1alpha1.Adopted); !strings.Contains(m, "entail iam adopt --dry-run") || !strings.Contains(m, "#owner") {
				t.Errorf("the message is %q", m)
			}
			w.verbs, w.writes = nil, 0
			if w.pass(1000); w.writes > 0 {
				t.Errorf("once that is said, these steps write: %v", w.verbs)
			}
			owned(ownOwnerTuple())(w)
			w.store.Spec.Tuples, w.store.Generation = declared(), w.store.Generation+1
			w.pass(1000)
			w.expectConditions(t, "Adopted=True/Ours", "ModelSynced=True/Merged")
		})
	}
}

// A later claim to a store in step is found by the next resync.
func TestResyncFindsLaterOwner(t *testing.T) {
	w := newSimulatedStore(makeIAMStore, inStep, owned(ownOwnerTuple(), iam.StoreOwnerTuple("x", "2")))
	if w.pass(1000); slices.Contains(w.verbs, plan.FindOwners) {
		t.Errorf("an ordinary pass asks: %v", w.verbs)
	}
	w.expectConditions(t, "Adopted=True/Ours")
	w.resync = true
	w.pass(1000)
	w.expectConditions(t, "Adopted=False/NotAdopted")
	w.resync = false
	w.pass(1000)
	w.expectConditions(t, "Adopted=False/NotAdopted")
}

// The Store says at once that it is out of force, and that it is back.
func TestIAMStoreWithoutOwnerTupleIsNotAdopted(t *testing.T) {
	w := newSimulatedStore(makeIAMStore, inStep, owned(ownOwnerTuple()), undeclared)
	w.pass(1000)
	w.expectConditions(t, "Adopted=False/NotAdopted", "ModelSynced=False/NotAdopted")
	if m := w.message(corev1alpha1.Adopted); !strings.Contains(m, "spec.tuples of Store demo does not declare store:demo#owner@cluster:this") {
		t.Errorf("got message %q", m)
	}
	makeIAMStore(w)
	w.store.Generation++
	w.pass(1000)
	w.expectConditions(t, "Adopted=True/Ours", "ModelSynced=True/Merged")
}
