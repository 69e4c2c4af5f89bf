package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// adoptStore lets the Store take over an OpenFGA store with all its content.
func adoptStore(w *simulatedStore) { w.store.Spec.Adoption = corev1alpha1.AdoptionAlways }

// makeStoreYounger makes the Store younger than everything in OpenFGA.
func makeStoreYounger(w *simulatedStore) {
	w.store.CreationTimestamp = metav1.NewTime(time.Unix(100, 0))
}

// addPredecessorStore adds an earlier Store with the name, which recorded this OpenFGA store.
func addPredecessorStore(id string, adopted bool) func(*simulatedStore) {
	return func(w *simulatedStore) {
		former := w.store.DeepCopy()
		former.Status = corev1alpha1.StoreStatus{StoreID: id, Adopted: adopted}
		w.earlier = append(w.earlier, former)
	}
}

// removeProofOfOwnership removes the proof that the Store's predecessor owned the OpenFGA store.
func removeProofOfOwnership(w *simulatedStore) { w.foreign = []string{"id1"} }

func TestChooseOpenFGAStoreByName(t *testing.T) {
	foreign := foreignModel()
	for name, test := range map[string]struct {
		given []func(*simulatedStore)
		// want is the condition StoreSynced, and id the store of the Store. outlives means that it stays after the
		// Store.
		want, id string
		outlives bool
	}{
		"one with a model is somebody's":             {given: []func(*simulatedStore){makeStoreYounger, exists("demo", foreign)}, want: "False/NameTaken", outlives: true},
		"be it younger than the Store":               {given: []func(*simulatedStore){exists("demo", foreign)}, want: "False/NameTaken", outlives: true},
		"or the first of several":                    {given: []func(*simulatedStore){makeStoreYounger, exists("demo", foreign), exists("demo")}, want: "False/NameTaken", outlives: true},
		"it is taken by who asks for it":             {given: []func(*simulatedStore){makeStoreYounger, adoptStore, exists("demo", foreign)}, want: "True/Adopted", id: "id1", outlives: true},
		"an empty one is taken":                      {given: []func(*simulatedStore){makeStoreYounger, exists("demo")}, want: "True/Adopted", id: "id1", outlives: true},
		"one made in a pass that was cut off":        {given: []func(*simulatedStore){exists("demo")}, want: "True/Adopted", id: "id1"},
		"and that although others may be taken, too": {given: []func(*simulatedStore){adoptStore, exists("demo")}, want: "True/Adopted", id: "id1"},
		"one that an earlier Store recorded": {
			given: []func(*simulatedStore){makeStoreYounger, exists("demo"), exists("demo", foreign), addPredecessorStore("id2", false)}, want: "True/Adopted", id: "id2",
		},
		"one that an earlier Store adopted": {
			given: []func(*simulatedStore){makeStoreYounger, exists("demo", foreign), addPredecessorStore("id1", true)}, want: "True/Adopted", id: "id1", outlives: true,
		},
		"one that an earlier Store is said to have recorded, and did not": {
			given: []func(*simulatedStore){makeStoreYounger, exists("demo", foreign), addPredecessorStore("id1", false), removeProofOfOwnership}, want: "False/NameTaken", outlives: true,
		},
		"one that was made for an earlier Store in a pass that was cut off": {
			given: []func(*simulatedStore){exists("demo"), addPredecessorStore("", false), makeStoreYounger}, want: "True/Adopted", id: "id1",
		},
		"one whose model the status names, though somebody put another id there": {
			given: []func(*simulatedStore){inStep, func(w *simulatedStore) { w.store.Status.StoreID = "by hand" }}, want: "True/Created", id: "id1",
		},
		"one that is in the status is no question": {
			given: []func(*simulatedStore){makeStoreYounger, exists("demo", foreign), func(w *simulatedStore) { w.store.Status.StoreID = "id1" }}, want: "True/Recorded", id: "id1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSimulatedStore(test.given...)
			w.pass(1000)
			w.expectConditions(t, "StoreSynced="+test.want)
			status := w.store.Status
			if status.StoreID != test.id || status.Adopted != (test.outlives && test.id != "") {
				t.Errorf("the status names %q, adopted: %v", status.StoreID, status.Adopted)
			}
			before := w.alive()
			if made := w.made; test.id == "" {
				w.pass(1000)
				expectNothingMade(t, w, made)
			}
			deleting(w)
			w.pass(1000)
			want := slices.DeleteFunc(before, func(id string) bool { return id == test.id && !test.outlives })
			if left := w.alive(); w.store != nil || !slices.Equal(left, want) {
				t.Errorf("left in OpenFGA are %v, want %v", left, want)
			}
		})
	}
}

func expectNothingMade(t *testing.T, w *simulatedStore, made int) {
	t.Helper()
	if w.made != made {
		t.Errorf("%d stores or models were made", w.made-made)
	}
	if m := w.message(corev1alpha1.StoreSynced); !strings.Contains(m, "spec.adoption: Always") || !strings.Contains(m, "id1") {
		t.Errorf("the message is %q", m)
	}
}

// IAM does not keep the content of a store it takes over, and the name of its Store is a setting.
func TestAdoptionMessageDescribesEffect(t *testing.T) {
	for protecting, want := range map[bool]string{false: "take that one over as it is", true: "name another by --iam-store, or take that one over without its tuples"} {
		w := newSimulatedStore(makeStoreYounger, exists("demo", foreignModel()), func(w *simulatedStore) { w.protecting = protecting })
		w.pass(1000)
		w.expectConditions(t, "StoreSynced=False/NameTaken")
		if m := w.message(corev1alpha1.StoreSynced); !strings.Contains(m, want) || !strings.Contains(m, "spec.adoption: Always") {
			t.Errorf("of IAM's Store (%v) the message is %q", protecting, m)
		}
	}
}

func TestAdoptedStoreStaysAdopted(t *testing.T) {
	w := newSimulatedStore(makeStoreYounger, adoptStore, exists("demo", foreignModel()), inStep)
	w.store.Spec.Adoption = ""
	edit(core + "\ntype folder\n")(w)
	w.pass(1000)
	w.expectConditions(t, "StoreSynced=True/Adopted", "ModelSynced=True/Merged")
	loseOpenFGAData(w)
	w.pass(1000)
	w.expectConditions(t, "StoreSynced=True/Recreated")
	if !w.store.Status.Adopted {
		t.Error("the status does not say any more that the store is adopted")
	}
}

func TestCleanupKeepsForeignStore(t *testing.T) {
	for _, adopted := range []bool{false, true} {
		t.Run(fmt.Sprint(adopted), func(t *testing.T) {
			w := newSimulatedStore(makeStoreYounger, adoptStore, func(w *simulatedStore) {
				if adopted {
					exists("demo", foreignModel())(w)
				}
			}, inStep)
			w.gone, w.store = w.store, nil
			w.pass(1000)
			if left := len(w.alive()); left == 1 != adopted {
				t.Errorf("%d stores are left", left)
			}
		})
	}
}

func TestDeletionWithoutStoreDoesNotDeleteTuples(t *testing.T) {
	w := newSimulatedStore(makeStoreYounger, exists("demo"))
	w.pass(1) // It has its finalizer and has read nothing yet.
	deleting(w)
	w.pass(1000)
	if w.store != nil || len(w.alive()) != 1 {
		t.Errorf("left in OpenFGA are %v", w.alive())
	}
}
