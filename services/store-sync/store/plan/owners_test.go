package plan_test

import (
	"slices"
	"strings"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func protecting(w *world) { w.protecting = true }

// overwritten has others write a model to the OpenFGA store that the Store has.
func overwritten(w *world) { w.find("id1").models = append(w.find("id1").models, foreignModel()) }

func owned(o plan.Owners) func(*world) { return func(w *world) { w.owners = o } }

// recorded is a Store whose status names what others made.
func recorded(w *world) {
	exists("demo", foreignModel())(w)
	late(w)
	w.store.Status.StoreID = "id1"
}

// A model decides about all tuples that are there: nobody's are decided about by mistake.
func TestAModelOfIAMIsWrittenOnlyWhereNobodyElseHasTuples(t *testing.T) {
	another, nobody := owned(plan.Owners{Ours: true, Other: "store:permissions#owner@cluster:2"}), owned(plan.Owners{Granted: "a/Thing:1#owner@a/User:1"})
	longer := edit(core + "\ntype folder\n")
	for name, test := range map[string]struct {
		given   []func(*world)
		written bool
		// want is Adopted, if anything is said.
		want string
	}{
		"one that was made here":                          {[]func(*world){protecting}, true, "True/Ours"},
		"one that names us":                               {[]func(*world){protecting, inStep, owned(plan.Owners{Ours: true}), overwritten}, true, "True/Ours"},
		"one that names another":                          {[]func(*world){protecting, inStep, another, longer}, false, "False/NotAdopted"},
		"and has another's model":                         {[]func(*world){protecting, inStep, another, overwritten}, false, "False/NotAdopted"},
		"and is taken":                                    {[]func(*world){protecting, inStep, another, longer, adopting}, true, "True/Taken"},
		"one that names nobody, and has tuples":           {[]func(*world){protecting, recorded, nobody}, false, "False/NotAdopted"},
		"and was found to be ours":                        {[]func(*world){protecting, inStep, nobody, overwritten}, true, "True/Ours"},
		"one that names nobody, and has no tuples of IAM": {[]func(*world){protecting, inStep, overwritten}, true, "True/Ours"},
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
			w.owners = plan.Owners{Ours: true}
			w.pass(1000)
			w.expectConditions(t, "Adopted=True/Ours", "ModelSynced=True/Merged")
		})
	}
}

// Who comes into a store that is in step is noticed, too.
func TestWhoClaimsAStoreLaterIsNoticedFromTimeToTime(t *testing.T) {
	w := newWorld(protecting, inStep, owned(plan.Owners{Ours: true, Other: "store:x#owner@cluster:2"}))
	if w.pass(1000); slices.Contains(w.verbs, plan.FindOwners) {
		t.Errorf("an ordinary pass asks: %v", w.verbs)
	}
	w.expectConditions(t, "Adopted=True/Ours")
	w.resync = true
	w.pass(1000)
	w.expectConditions(t, "Adopted=False/NotAdopted")
	w.resync = false
	w.pass(1000)
	w.expectConditions(t, "Adopted=False/NotAdopted") // Nothing else was found out since.
}
