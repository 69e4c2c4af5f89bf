package module_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/module/moduletest"
)

func TestAnObjectIsUnchangedAsLongAsNoModelDependsOnWhatHasChanged(t *testing.T) {
	f := moduletest.NewFeed(t)
	s := module.NewState(f.View, moduletest.Cluster)
	store := corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: "demo", UID: "demo"}, Spec: corev1alpha1.StoreSpec{CoreModule: "module core"}}
	model := moduletest.Model("docs", corev1alpha1.StoreRef{Name: "demo"})
	tuples := []corev1alpha1.Tuple{{Object: "doc:1", Relation: "viewer", User: "user:1"}}
	synced := []metav1.Condition{{Type: corev1alpha1.TuplesSynced, Status: metav1.ConditionTrue}}
	now := metav1.Now()
	for _, step := range []struct {
		what string
		edit func()
		want bool
	}{
		{"what is new", func() {}, false},
		{"the same", func() {}, true},
		{"tuples", func() { store.Spec.Tuples, model.Spec.Tuples = tuples, tuples; store.Generation++; model.Generation++ }, true},
		{"what tuple-sync says", func() {
			store.Status.Conditions, model.Status.Conditions = synced, synced
			store.Status.ManagedTuples, model.Status.ManagedTuples = tuples, tuples
		}, true},
		{"a text", func() { store.Spec.CoreModule, model.Spec.Model = "module more", "module docs" }, false},
		{"that text", func() {}, true},
		{"what we have recorded", func() {
			store.Status.StoreID = "id1"
			model.Status.Live = &corev1alpha1.LiveModel{Model: "module docs"}
		}, false},
		{"a deletion", func() { store.DeletionTimestamp, model.DeletionTimestamp = &now, &now }, false},
	} {
		step.edit()
		if got := s.Unchanged(f.Put(kinds.Stores(), moduletest.Cluster, "demo", store)); got != step.want {
			t.Errorf("%s: a Store is unchanged: %t", step.what, got)
		}
		if got := s.Unchanged(f.Put(kinds.AuthorizationModels(), moduletest.Cluster, "docs", model)); got != step.want {
			t.Errorf("%s: a module is unchanged: %t", step.what, got)
		}
	}
	store.Finalizers = []string{corev1alpha1.StoreFinalizer}
	f.Put(kinds.Stores(), moduletest.Cluster, "demo", store)
	if s.Unchanged(module.StoreKey("demo", moduletest.Cluster)) {
		t.Error("what others take off a Store in deletion is no news")
	}
	gone := f.Put(kinds.AuthorizationModels(), moduletest.Cluster, "docs", model, moduletest.Gone)
	if s.Unchanged(gone) {
		t.Error("what is gone is unchanged")
	}
}
