package plan_test

import (
	"slices"
	"strings"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// ours is the tuple by which the IAM store demo belongs to this cluster.
func ours() iam.Tuple { return iam.StoreOwnerTuple("demo", "this") }

// protecting makes the Store the IAM store as store-sync does.
func protecting(w *world) { w.protecting, w.store.Spec.Tuples = true, declared() }

func declared() []corev1alpha1.Tuple {
	return []corev1alpha1.Tuple{{User: ours().User, Relation: ours().Relation, Object: ours().Object}}
}

// undeclared removes the owner's tuple from the Store, as a later generation.
func undeclared(w *world) { w.store.Spec.Tuples, w.store.Generation = nil, w.store.Generation+1 }

// overwritten makes another owner write a model to the Store's OpenFGA store.
func overwritten(w *world) { w.find("id1").models = append(w.find("id1").models, foreignModel()) }

func owned(named ...iam.Tuple) func(*world) {
	return func(w *world) { w.owners = plan.IAMStoreOwners{Owner: ours(), Named: named} }
}

// recorded makes the Store's status name a store of another owner.
func recorded(w *world) {
	exists("demo", foreignModel())(w)
	late(w)
	w.store.Status.StoreID = "id1"
}

// A model decides about all tuples in the store, so it must not be written over another owner's tuples.
func TestAModelOfIAMIsWrittenOnlyWhereNobodyElseHasTuples(t *testing.T) {
	another := owned(ours(), iam.StoreOwnerTuple("permissions", "2"))
	nobody := func(w *world) { w.owners = plan.IAMStoreOwners{Owner: ours(), Granted: "a/Thing:1#owner@a/User:1"} }
	longer := edit(core + "\ntype folder\n")
	for name, test := range map[string]struct {
		given   []func(*world)
		written bool
		// want is the condition Adopted, "" if it is missing.
		want string
	}{
		"one that was made here":                          {[]func(*world){protecting}, true, "True/Ours"},
		"one that names us":                               {[]func(*world){protecting, inStep, owned(ours()), overwritten}, true, "True/Ours"},
		"one that names another":                          {[]func(*world){protecting, inStep, another, longer}, false, "False/NotAdopted"},
		"and has another's model":                         {[]func(*world){protecting, inStep, another, overwritten}, false, "False/NotAdopted"},
		"and is taken":                                    {[]func(*world){protecting, inStep, another, longer, adopting}, true, "True/Taken"},
		"one that names nobody, and has tuples":           {[]func(*world){protecting, recorded, nobody}, false, "False/NotAdopted"},
		"and was found to be ours":                        {[]func(*world){protecting, inStep, nobody, overwritten}, true, "True/Ours"},
		"one that names nobody, and has no tuples of IAM": {[]func(*world){protecting, inStep, owned(), overwritten}, true, "True/Ours"},
		"one that no Store declares any more":             {[]func(*world){protecting, inStep, owned(ours()), undeclared, overwritten}, false, "False/NotAdopted"},
		"one that was made by hand, and is not declared":  {[]func(*world){protecting, undeclared, inStep, owned(), overwritten}, false, "False/NotAdopted"},
		"one that is not IAM's":                           {[]func(*world){inStep, another, longer}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(test.given...)
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
			owned(ours())(w)
			w.store.Spec.Tuples, w.store.Generation = declared(), w.store.Generation+1
			w.pass(1000)
			w.expectConditions(t, "Adopted=True/Ours", "ModelSynced=True/Merged")
		})
	}
}

// A later claim to a store in step is found by the next resync.
func TestWhoClaimsAStoreLaterIsNoticedFromTimeToTime(t *testing.T) {
	w := newWorld(protecting, inStep, owned(ours(), iam.StoreOwnerTuple("x", "2")))
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
func TestAnIAMStoreWithoutItsOwnersTupleIsNotAdopted(t *testing.T) {
	w := newWorld(protecting, inStep, owned(ours()), undeclared)
	w.pass(1000)
	w.expectConditions(t, "Adopted=False/NotAdopted", "ModelSynced=False/NotAdopted")
	if m := w.message(corev1alpha1.Adopted); !strings.Contains(m, "spec.tuples of Store demo does not declare store:demo#owner@cluster:this") {
		t.Errorf("got message %q", m)
	}
	protecting(w)
	w.store.Generation++
	w.pass(1000)
	w.expectConditions(t, "Adopted=True/Ours", "ModelSynced=True/Merged")
}
