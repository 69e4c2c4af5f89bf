package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func TestMessagesHaveRemedies(t *testing.T) {
	tests := map[string]struct {
		given []func(*simulatedStore)
		kind  string
		want  []string
	}{
		"name":       {[]func(*simulatedStore){func(w *simulatedStore) { w.name = "ab" }}, corev1alpha1.StoreSynced, []string{`"ab"`, "create one with another metadata.name"}},
		"core":       {[]func(*simulatedStore){edit(broken)}, corev1alpha1.ModelSynced, []string{"spec.coreModule", "nobody"}},
		"no types":   {[]func(*simulatedStore){edit("module core\n")}, corev1alpha1.ModelSynced, []string{"no module defines a type", "type user"}},
		"empty core": {[]func(*simulatedStore){edit(" \n")}, corev1alpha1.ModelSynced, []string{"empty", "module <name>"}},
		"core that was good": {
			[]func(*simulatedStore){inStep, edit(typo)},
			corev1alpha1.ModelSynced,
			[]string{"spec.coreModule: line 5:", "model2 is live, with the core module of generation 1", "nothing that this edit removes", "to revoke now"},
		},
		"module": {
			[]func(*simulatedStore){withModules("nonsense")},
			corev1alpha1.ModelSynced,
			[]string{"1 of 2 modules", "authorizationmodel/m00", "status.modules"},
		},
		"limit": {
			[]func(*simulatedStore){withModules(dsl("folder")), func(w *simulatedStore) { w.limits = model.Limits{Types: 2} }},
			"m00",
			[]string{"no room for it", "3 types, of at most 2", "raise the limits"},
		},
		"size": {
			[]func(*simulatedStore){withModules(dsl("folder")), func(w *simulatedStore) { w.limits = model.Limits{Bytes: 130} }},
			"m00",
			[]string{"bytes, of at most 130"},
		},
		"namesakes": {
			[]func(*simulatedStore){exists("demo"), exists("demo"), exists("demo")},
			corev1alpha1.NameUnique,
			[]string{"2 more", "id2, id3", "id1 is in use"},
		},
		"claimed": {
			[]func(*simulatedStore){exists("demo"), addCompetingStore("east", "id1", time.Hour)},
			corev1alpha1.StoreSynced,
			[]string{"id1", `cluster "east"`, "give it another name"},
		},
		"lost":  {[]func(*simulatedStore){inStep, loseOpenFGAData}, corev1alpha1.StoreSynced, []string{"id3 was created", "because id1, with its content, is missing"}},
		"drift": {[]func(*simulatedStore){inStep, renamed, resync}, corev1alpha1.NameInSync, []string{`named "other"`, "not supported", "continues to use it"}},
		"dependents": {
			[]func(*simulatedStore){withModules("a", "b"), inStep, deleting},
			corev1alpha1.Deleting,
			[]string{"2 AuthorizationModels", "authorizationmodel/m00, authorizationmodel/m01"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newSimulatedStore(test.given...)
			w.pass(1000)
			got := w.message(test.kind)
			if test.kind == "m00" {
				got = w.modules[0].Value.Status.Conditions[0].Message
			}
			for _, part := range test.want {
				if !strings.Contains(got, part) {
					t.Errorf("%s says %q, without %q", test.kind, got, part)
				}
			}
		})
	}
}

func TestStatusIsBounded(t *testing.T) {
	texts := slices.Repeat([]string{""}, 210)
	texts[0] = "module m\n\n" + strings.Repeat("üß", 3000)
	w := newSimulatedStore(withModules(texts...))
	for i := range w.modules {
		w.modules[i].Key.Name += strings.Repeat("ü", 120)
	}
	w.pass(1000)
	if n := len(w.store.Status.Modules); n != 200 {
		t.Errorf("status lists %d modules", n)
	}
	deleting(w)
	w.pass(1000)
	conditions := slices.Clone(w.store.Status.Conditions)
	for _, m := range w.modules {
		conditions = append(conditions, m.Value.Status.Conditions...)
	}
	for _, c := range conditions {
		if len(c.Message) > 1024 || !utf8.ValidString(c.Message) {
			t.Errorf("%s has a message of %d bytes, valid %t", c.Type, len(c.Message), utf8.ValidString(c.Message))
		}
	}
}

func TestModuleIsNotMergedWithoutOpenFGAStore(t *testing.T) {
	w := newSimulatedStore(withModules(dsl("folder")), func(w *simulatedStore) { w.name = "ab" })
	w.pass(1000)
	if listed := w.store.Status.Modules; len(listed) > 0 {
		t.Errorf("the status lists %+v", listed)
	}
}

func TestConditionsHaveGenerationOfText(t *testing.T) {
	w := newSimulatedStore(withModules(dsl("folder")), inStep)
	w.store.Generation, w.modules[0].Value.Generation = 7, 9
	w.store.Spec.CoreModule, w.modules[0].Value.Spec.Model = core+"\ntype team\n", dsl("file")
	w.pass(1000)
	for _, c := range w.store.Status.Conditions {
		if c.ObservedGeneration != 7 {
			t.Errorf("%s is of generation %d", c.Type, c.ObservedGeneration)
		}
	}
	for _, c := range w.modules[0].Value.Status.Conditions {
		if c.ObservedGeneration != 9 {
			t.Errorf("%s of the module is of generation %d", c.Type, c.ObservedGeneration)
		}
	}
}

func TestObservedGenerationIsDeferredToTupleSync(t *testing.T) {
	w := newSimulatedStore(withModules(dsl("folder")), inStep)
	w.store.Generation, w.modules[0].Value.Generation = 7, 9
	for range 2 {
		w.pass(1000)
	}
	if w.writes != 0 || !slices.Equal(w.verbs[:3], []plan.ActionVerb{plan.LatestModel, plan.GetStore, plan.WriteStatus}) {
		t.Errorf("%d writes in %v", w.writes, w.verbs)
	}
	syncing := metav1.Condition{Type: corev1alpha1.TuplesSynced, Status: metav1.ConditionFalse, Reason: corev1alpha1.Syncing, ObservedGeneration: 7}
	before := w.store.Status.Conditions
	w.store.Status.Conditions = append(slices.Clip(before), syncing)
	if w.pass(1000); w.writes != 0 {
		t.Errorf("got %d writes while tuple-sync writes, want 0", w.writes)
	}
	w.store.Status.Conditions = slices.Concat(before, tupleConditions(7))
	w.modules[0].Value.Status.Conditions = append(w.modules[0].Value.Status.Conditions, tupleConditions(9)...)
	w.verbs = nil
	if w.pass(1000); w.writes != 2 || !slices.Equal(w.verbs, []plan.ActionVerb{plan.LatestModel, plan.WriteStatus}) {
		t.Errorf("got %d writes in %v after tuple-sync was done; want one each of the Store and the module", w.writes, w.verbs)
	}
	if s, m := w.store.Status.Conditions, w.modules[0].Value.Status.Conditions; generationOf(s, corev1alpha1.ModelSynced) != 7 || generationOf(m, corev1alpha1.Merged) != 9 {
		t.Errorf("conditions have another observedGeneration than 7 and 9: %+v, %+v", s, m)
	}
	w.writes = 0
	if w.pass(1000); w.writes != 0 {
		t.Errorf("got %d writes although nothing changed", w.writes)
	}
	w.modules[0].Value.Spec.Model = "module folder\n\ntype folder\n  relations\n    define reader [user]\n"
	w.pass(1000)
	w.writes = 0
	w.modules[0].Value.Generation++
	if w.pass(1000); w.writes != 1 {
		t.Errorf("%d writes where each generation that is not live must be spoken of", w.writes)
	}
}

// tupleConditions returns what tuple-sync writes when it is done with a generation.
func tupleConditions(generation int64) []metav1.Condition {
	return []metav1.Condition{
		{Type: corev1alpha1.TuplesSynced, Status: metav1.ConditionTrue, ObservedGeneration: generation},
		{Type: corev1alpha1.Ready, Status: metav1.ConditionTrue, ObservedGeneration: generation},
	}
}

// generationOf returns the observedGeneration of a condition, 0 if it is missing.
func generationOf(conditions []metav1.Condition, typ string) int64 {
	if c := meta.FindStatusCondition(conditions, typ); c != nil {
		return c.ObservedGeneration
	}
	return 0
}

func TestOwnedConditionsExcludeOtherServices(t *testing.T) {
	status := corev1alpha1.StoreStatus{
		TupleCount: 3, ManagedTuplesStoreID: "x", ManagedTuples: []corev1alpha1.Tuple{{Object: "a:b"}},
		Conditions: []metav1.Condition{{Type: corev1alpha1.TuplesSynced}, {Type: corev1alpha1.Ready}},
	}
	own := plan.OwnedStoreStatus(status)
	if own.TupleCount != 0 || own.ManagedTuplesStoreID != "" || own.ManagedTuples != nil || len(own.Conditions) != 0 {
		t.Errorf("we would write %+v", own)
	}
}

func TestOutcomesAndEvents(t *testing.T) {
	const (
		applied  = eventv1.Outcome_OUTCOME_APPLIED
		rejected = eventv1.Outcome_OUTCOME_REJECTED
		pending  = eventv1.Outcome_OUTCOME_PENDING
	)
	tests := map[string]struct {
		given         []func(*simulatedStore)
		store, module eventv1.Outcome
		notes         []string
	}{
		"created":   {[]func(*simulatedStore){withModules(dsl("folder"))}, applied, applied, []string{"StoreCreated", "ModelWritten"}},
		"adopted":   {[]func(*simulatedStore){exists("demo"), withModules(dsl("folder"))}, applied, applied, []string{"StoreAdopted", "ModelWritten"}},
		"recreated": {[]func(*simulatedStore){withModules(dsl("folder")), inStep, loseOpenFGAData}, applied, applied, []string{"StoreRecreated", "ModelWritten"}},
		"in step":   {[]func(*simulatedStore){withModules(dsl("folder")), inStep}, applied, applied, nil},
		"bad core":  {[]func(*simulatedStore){withModules(dsl("folder")), edit("")}, rejected, pending, []string{"StoreCreated", "ModuleRejected"}},
		"bad module": {
			[]func(*simulatedStore){inStep, withModules("nonsense")}, applied, rejected, []string{"ModuleRejected"},
		},
		"bad module, told before": {[]func(*simulatedStore){withModules("nonsense"), inStep}, applied, rejected, nil},
		"bad name":                {[]func(*simulatedStore){withModules(dsl("folder")), func(w *simulatedStore) { w.name = "ab" }}, rejected, pending, []string{"StoreRejected"}},
		"too large": {
			[]func(*simulatedStore){inStep, withModules(dsl("folder")), func(w *simulatedStore) { w.limits.Types = 2 }}, applied, pending, []string{"ModuleRejected"},
		},
		"blocked": {[]func(*simulatedStore){withModules(dsl("folder")), inStep, deleting}, pending, applied, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newSimulatedStore(test.given...)
			w.pass(1000)
			module := w.told[w.modules[0].Value.Name]
			if w.toldStore.Outcome != test.store {
				t.Errorf("Store: %v, want %v", w.toldStore.Outcome, test.store)
			}
			if module.Outcome != test.module {
				t.Errorf("module: %v, want %v", module.Outcome, test.module)
			}
			var notes []string
			for _, n := range append(w.notes, module.Notes...) {
				notes = append(notes, n.Reason)
			}
			if !slices.Equal(notes, test.notes) {
				t.Errorf("notes %v, want %v", notes, test.notes)
			}
		})
	}
}
