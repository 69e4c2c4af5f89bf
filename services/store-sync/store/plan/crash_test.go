package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/seeds"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func TestInterruptedPassIsCompletedByNext(t *testing.T) {
	situations := map[string][]func(*simulatedStore){
		"new":            {},
		"with modules":   {withModules(dsl("folder"), "nonsense", dsl("group"))},
		"adopted":        {adoptStore, exists("demo", foreignModel())},
		"name taken":     {exists("demo", foreignModel())},
		"ambiguous":      {exists("demo"), exists("demo")},
		"lost":           {inStep, loseOpenFGAData},
		"lost in name":   {inStep, deletedBehindOurBack, resync},
		"edited":         {inStep, edit(core + "\ntype folder\n")},
		"broken":         {inStep, edit(broken)},
		"other name now": {inStep, renamed, resync},
	}
	for name, given := range situations {
		for steps := range 7 {
			t.Run(fmt.Sprintf("%s after %d steps", name, steps), func(t *testing.T) {
				straight, cut := newSimulatedStore(given...), newSimulatedStore(given...)
				straight.pass(1000)
				cut.pass(steps)
				cut.pass(1000)
				if len(cut.alive()) != len(straight.alive()) {
					t.Errorf("stores in OpenFGA: %v, without the crash %v", cut.alive(), straight.alive())
				}
				expectSameModel(t, cut, straight)
				if got, want := cut.modelCount(), straight.modelCount(); got != want {
					t.Errorf("got %d models, want %d as without the crash", got, want)
				}
				before := cut.writes
				if cut.pass(1000); cut.writes != before {
					t.Errorf("the pass after wrote %d times", cut.writes-before)
				}
			})
		}
	}
}

func expectSameModel(t *testing.T, a, b *simulatedStore) {
	t.Helper()
	latest := func(w *simulatedStore) (last plan.Action) {
		s := w.find(w.store.Status.StoreID)
		if n := len(s.models); n > 0 {
			last.Model = s.models[n-1]
		}
		return last
	}
	if got, want := latest(a).Model, latest(b).Model; !model.Equal(got, want) {
		t.Errorf("latest model\n%v, want\n%v", got, want)
	}
}

// modelCount counts the models of the Store's OpenFGA store.
func (w *simulatedStore) modelCount() int { return len(w.find(w.store.Status.StoreID).models) }

func TestInterruptedDeletionIsCompletedByNext(t *testing.T) {
	for made := range 7 {
		for steps := range 5 {
			t.Run(fmt.Sprintf("made by %d steps, deleted by %d", made, steps), func(t *testing.T) {
				w := newSimulatedStore()
				w.pass(made)
				held := len(w.store.Finalizers) > 0
				deleting(w)
				if w.pass(steps); w.store != nil {
					w.pass(1000)
				}
				if left := w.alive(); len(left) > 0 {
					t.Errorf("left in OpenFGA: %v", left)
				}
				if held && w.store != nil {
					t.Errorf("the Store is still held by %v", w.store.Finalizers)
				}
			})
		}
	}
}

func TestModulesInAnyOrderAreWrittenOnce(t *testing.T) {
	var texts []string
	for i := range 20 {
		texts = append(texts, dsl(fmt.Sprintf("thing%d", i)))
	}
	want := newSimulatedStore(withModules(texts...), inStep)
	for seed := range seeds.SeedRange(t, 5) {
		w := newSimulatedStore(withModules(texts...))
		order := rand.New(rand.NewPCG(seed, 0))
		order.Shuffle(len(w.modules), func(i, j int) { w.modules[i], w.modules[j] = w.modules[j], w.modules[i] })
		for range 3 {
			w.pass(1000)
			order.Shuffle(len(w.modules), func(i, j int) { w.modules[i], w.modules[j] = w.modules[j], w.modules[i] })
		}
		models := w.find("id1").models
		if len(models) != 1 {
			t.Fatalf("order %d: %d models were written", seed, len(models))
		}
		if !proto.Equal(models[0], want.find("id1").models[0]) {
			t.Errorf("order %d gives another model:\n%v", seed, models[0])
		}
	}
}

func TestModuleSourcesAreInCanonicalOrder(t *testing.T) {
	in := newSimulatedStore(withModules(dsl("b"), dsl("a"))).input()
	foreign := module("a00", dsl("c"))
	foreign.Key.Cluster = "east"
	in.Modules = append([]plan.ModelObject{foreign}, in.Modules...)
	slices.Reverse(in.Modules)
	first, others := plan.ModuleSources(in)
	got := []string{first.Origin.String()}
	for _, m := range others {
		got = append(got, m.Origin.String())
	}
	want := []string{"core", "authorizationmodel/m00", "authorizationmodel/m01"}
	if !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestRejectedModuleIsLiveAfterFix(t *testing.T) {
	w := newSimulatedStore(withModules(dsl("folder"), dsl("folder")+"  # again\n    define writer: [user]\n"), inStep)
	w.expectConditions(t, "m01:Merged=False/Rejected")
	w.modules[1].Value.Spec.Model = dsl("group")
	w.modules[1].Value.Generation++
	w.pass(1000)
	w.expectConditions(t, "m00:Merged=True/Merged", "m01:Merged=True/Merged", "ModelSynced=True/Merged")
	if n := len(w.find("id1").models); n != 2 {
		t.Errorf("%d models were written, want one before and one after", n)
	}
}

func TestBrokenCoreModuleDoesNotBlockOthers(t *testing.T) {
	w := newSimulatedStore(withModules(dsl("folder")), inStep, edit(typo))
	late := module("late", dsl("group"))
	w.modules = append(w.modules, late)
	w.pass(1000)
	w.expectConditions(t, "m00:Merged=True/Merged", "late:Merged=True/Merged", "ModelSynced=False/InvalidCore")
}

func TestDigestNamesLiveTextAndFirstModel(t *testing.T) {
	w := newSimulatedStore(withModules(dsl("folder")), inStep)
	m := w.modules[0].Value
	expect := func(when string, live bool, since int) {
		t.Helper()
		models := w.find(w.store.Status.StoreID).models
		want := corev1alpha1.AuthorizationModelStatus{Conditions: m.Status.Conditions, Live: m.Status.Live}
		if live {
			want.ModelDigest, want.AuthorizationModelID = m.ModelDigest(w.store.Status.StoreID), models[since].GetId()
		}
		if !equality.Semantic.DeepEqual(m.Status, want) {
			t.Errorf("%s: the module's status is %+v, want %+v", when, m.Status, want)
		}
	}
	expect("at first", true, 0)
	first := w.store.ModelDigest()
	edit(core + "\ntype group\n")(w)
	w.pass(1000)
	expect("in a newer model", true, 0)
	if got := w.store.Status.ModelDigest; got != w.store.ModelDigest() || got == first {
		t.Errorf("the Store's digest is %q, before %q", got, first)
	}
	m.Generation++
	m.Spec.Model = dsl("folder") + "    define writer: [user]\n"
	w.pass(1000)
	expect("after a change", true, 2)
	m.Generation++
	m.Spec.Model = "nonsense"
	edit(broken)(w)
	w.pass(1000)
	expect("after a mistake", false, 0)
	if got := w.store.Status.ModelDigest; got != "" {
		t.Errorf("the digest of a broken core is %q", got)
	}
	m.Generation++
	m.Spec.Model = dsl("folder")
	edit(core)(w)
	loseOpenFGAData(w)
	w.pass(1000)
	expect("in another store", true, 0)
}

func TestTupleConditionsDoNotCauseWrite(t *testing.T) {
	w := newSimulatedStore(inStep)
	meta.SetStatusCondition(&w.store.Status.Conditions, metav1.Condition{
		Type: corev1alpha1.TuplesSynced, Status: metav1.ConditionFalse, Reason: corev1alpha1.Syncing, ObservedGeneration: w.store.Generation,
	})
	if w.pass(1000); w.writes != 0 {
		t.Errorf("%d writes while tuple-sync is at work", w.writes)
	}
}

func TestReplanComparesWithWrittenModel(t *testing.T) {
	w := newSimulatedStore()
	var obs plan.Observed
	for range 20 {
		a := plan.NextAction(w.input(), obs)
		w.do(a, &obs)
		if a.Verb == plan.WriteStatus {
			break
		}
		if a.Verb == plan.WriteModel && len(w.find("id1").models) == 1 {
			edit(core + "\ntype folder\n")(w)
		}
	}
	if models := w.find("id1").models; len(models) != 2 || len(models[1].GetTypeDefinitions()) != 3 {
		t.Errorf("%d models were written", len(models))
	}
	w.expectConditions(t, "StoreSynced=True/Created", "ModelSynced=True/Merged")
}
