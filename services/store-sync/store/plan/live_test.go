package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
)

const unreadable = "module folder\n\ntype folder\n  relations\n    define reader [user]\n"

// wide returns dsl with one more relation.
func wide() string { return dsl("folder") + "    define writer: [user]\n" }

// editModule edits the first module.
func editModule(text string) func(*simulatedStore) {
	return func(w *simulatedStore) {
		w.modules[0].Value.Spec.Model = text
		w.modules[0].Value.Generation++
	}
}

func pass(w *simulatedStore) { w.pass(1000) }

// has reports whether a relation of a type is in the newest model.
func (w *simulatedStore) has(typ, relation string) bool {
	models := w.find(w.store.Status.StoreID).models
	if len(models) == 0 {
		return false
	}
	return modelHas(models[len(models)-1], typ, relation)
}

func modelHas(m *openfgav1.AuthorizationModel, typ, relation string) bool {
	return slices.ContainsFunc(m.GetTypeDefinitions(), func(t *openfgav1.TypeDefinition) bool {
		_, ok := t.GetRelations()[relation]
		return t.GetType() == typ && (relation == "" || ok)
	})
}

// anotherStore replaces the Store by a new one with the same name.
func anotherStore(w *simulatedStore) {
	w.fga = nil
	w.store = &corev1alpha1.Store{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Generation: 1, UID: "second"}, Spec: corev1alpha1.StoreSpec{CoreModule: core},
	}
}

func TestInvalidEditDoesNotRemoveTuples(t *testing.T) {
	const lastGood = "m00:Merged=False/LastGoodLive"
	tests := map[string]struct {
		given      []func(*simulatedStore)
		live, gone []string
		conditions []string
	}{
		"in a module that was live": {
			live:       []string{"folder#reader", "folder#writer"},
			conditions: []string{lastGood, "ModulesInSync=False/LastGoodLive", "ModelSynced=True/ModulesRejected"},
		},
		"after OpenFGA lost everything": {given: []func(*simulatedStore){loseOpenFGAData}, live: []string{"folder#writer"}, conditions: []string{lastGood}},
		"after somebody deleted the store": {
			given: []func(*simulatedStore){deletedBehindOurBack}, live: []string{"folder#writer"}, conditions: []string{lastGood},
		},
		"after another model was written over it": {
			given: []func(*simulatedStore){func(w *simulatedStore) { w.fga[0].models = append(w.fga[0].models, foreignModel()) }},
			live:  []string{"folder#writer"}, conditions: []string{lastGood},
		},
		"but nothing outlives the Store": {
			given: []func(*simulatedStore){anotherStore}, gone: []string{"folder"}, conditions: []string{"m00:Merged=False/Rejected"},
		},
		"after a removal": {given: []func(*simulatedStore){editModule(dsl("folder")), pass}, live: []string{"folder#reader"}, gone: []string{"folder#writer"}},
		"after a text that can be read, and cannot live, removed something": {
			given: []func(*simulatedStore){editModule(dsl("folder") + "    define other: [nobody]\n"), pass},
			live:  []string{"folder#reader"}, gone: []string{"folder#writer", "folder#other"}, conditions: []string{lastGood},
		},
		"after that, and OpenFGA lost everything": {
			given: []func(*simulatedStore){editModule(dsl("folder") + "    define other: [nobody]\n"), pass, loseOpenFGAData},
			live:  []string{"folder#reader"}, gone: []string{"folder#writer"},
		},
		"after it moved away and back": {
			given: []func(*simulatedStore){func(w *simulatedStore) {
				away := w.modules[0]
				store := w.store
				w.store = nil
				pass(w)
				w.store, w.modules[0] = store, away
			}},
			gone: []string{"folder"}, conditions: []string{"m00:Merged=False/Rejected"},
		},
		"but a deletion removes at once": {
			given: []func(*simulatedStore){func(w *simulatedStore) {
				now := metav1.NewTime(time.Unix(1, 0))
				w.modules[0].Value.DeletionTimestamp = &now
			}},
			gone: []string{"folder"},
		},
		"beside one in the core module": {
			given: []func(*simulatedStore){edit(typo)}, live: []string{"folder#writer", "document#owner"},
			conditions: []string{lastGood, "ModelSynced=False/InvalidCore"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newSimulatedStore(withModules(wide()), inStep)
			for _, given := range test.given {
				given(w)
			}
			editModule(unreadable)(w)
			pass(w)
			for _, what := range append(slices.Clone(test.live), test.gone...) {
				typ, relation, _ := strings.Cut(what, "#")
				if got := w.has(typ, relation); got != slices.Contains(test.live, what) {
					t.Errorf("%s is live: %t", what, got)
				}
			}
			w.expectConditions(t, test.conditions...)
			before := w.writes
			if w.pass(1000); w.writes != before {
				t.Errorf("the next pass wrote %d times: %v", w.writes-before, w.verbs)
			}
		})
	}
}

func TestRevocationSurvivesCrashAndInvalidEdit(t *testing.T) {
	for name, tt := range map[string]struct {
		revoke, slip  func(*simulatedStore)
		typ, relation string
	}{
		"in a module":                {editModule(dsl("folder")), editModule(unreadable), "folder", "writer"},
		"in one that cannot live":    {editModule(dsl("folder") + "    define other: [nobody]\n"), editModule(unreadable), "folder", "writer"},
		"in the core module":         {edit(strings.ReplaceAll(core, "owner", "holder")), edit(typo), "document", "owner"},
		"in a broken core module":    {edit(broken), edit(typo), "document", ""},
		"by another type altogether": {editModule(dsl("group")), editModule(unreadable), "folder", ""},
	} {
		for steps := range 8 {
			t.Run(fmt.Sprintf("%s after %d steps", name, steps), func(t *testing.T) {
				w := newSimulatedStore(withModules(wide()), inStep)
				tt.revoke(w)
				w.pass(steps)
				tt.slip(w)
				pass(w)
				revoked := false
				for _, m := range w.find("id1").models {
					has := modelHas(m, tt.typ, tt.relation)
					if revoked && has {
						t.Errorf("%s#%s came back", tt.typ, tt.relation)
					}
					revoked = revoked || !has
				}
			})
		}
	}
}

func TestNewModuleDoesNotEvictOthers(t *testing.T) {
	w := newSimulatedStore(withModules(dsl("folder")), inStep)
	early := module("aaa", dsl("folder")+"    define mine: [user]\n")
	w.modules = append(w.modules, early)
	pass(w)
	w.expectConditions(t, "m00:Merged=True/Merged", "aaa:Merged=False/Rejected")
	if w.has("folder", "mine") {
		t.Error("the newcomer took the type over")
	}
}

func TestDependencyDoesNotBlockRemoval(t *testing.T) {
	w := newSimulatedStore(withModules(wide(),
		"module other\n\ntype shelf\n  relations\n    define reader: [folder#reader]\n    define writer: [folder#writer]\n"), inStep)
	editModule(dsl("folder"))(w)
	pass(w)
	w.expectConditions(t, "m00:Merged=True/Merged", "m01:Merged=False/LastGoodLive")
	if w.has("folder", "writer") || w.has("shelf", "writer") || !w.has("shelf", "reader") {
		t.Error("of what depended on it only what holds without it is to stay")
	}
	if got := w.message(corev1alpha1.ModelSynced); !strings.Contains(got, "; with the last valid version in force: authorizationmodel/m01") || strings.Contains(got, "rejected") {
		t.Errorf("got message %q", got)
	}
}

func TestDigestIsClearedWithText(t *testing.T) {
	const shelf = "module other\n\ntype shelf\n  relations\n    define writer: [folder#writer]\n"
	for steps := range 8 {
		w := newSimulatedStore(withModules(wide(), shelf+"    define reader: [folder#reader]\n"), inStep)
		editModule(dsl("folder"))(w)
		w.pass(steps)
		if got := w.modules[1].Value.Status.ModelDigest; !w.has("shelf", "writer") && got != "" {
			t.Errorf("after %d steps the digest of a text that is live in part is %q", steps, got)
		}
	}
}

func TestCoreModuleEvictsOthersAndNamesThem(t *testing.T) {
	w := newSimulatedStore(withModules(dsl("folder")), inStep, edit(core+"\ntype folder\n"))
	pass(w)
	w.expectConditions(t, "ModelSynced=True/ModulesRejected", "m00:Merged=False/Rejected")
	if message := w.message(corev1alpha1.ModulesInSync); !strings.Contains(message, "authorizationmodel/m00") {
		t.Errorf("the Store says %q", message)
	}
}

func TestLiveModulesStayUnlessLimitsShrink(t *testing.T) {
	w := newSimulatedStore(withModules(dsl("folder"), dsl("group")), func(w *simulatedStore) { w.limits = model.Limits{Types: 4} }, inStep)
	w.modules[1].Value.CreationTimestamp = metav1.NewTime(time.Unix(5, 0))
	w.modules = append(w.modules, module("aaa", dsl("newcomer")))
	editModule(wide())(w) // A change of another author goes live all the same.
	pass(w)
	w.expectConditions(t, "m00:Merged=True/Merged", "m01:Merged=True/Merged", "aaa:Merged=False/LimitExceeded")
	if !w.has("folder", "writer") || !w.has("group", "") {
		t.Error("a newcomer is in the way of others")
	}
	editModule(dsl("folder") + "\ntype more\n")(w)
	pass(w)
	w.expectConditions(t, "m00:Merged=False/LastGoodLive")
	if !w.has("folder", "reader") || w.has("folder", "writer") {
		t.Error("who does not fit is to keep the last live text, without what the new one does not have")
	}
	w.limits.Types = 3
	pass(w)
	if !w.has("folder", "reader") || w.has("group", "") {
		t.Error("the youngest is to go when there is less room")
	}
}
