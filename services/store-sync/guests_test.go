package storesync

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	apimodel "github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func TestWhatAnotherClusterMadeForAStoreHereStays(t *testing.T) {
	d := newDesk(t)
	demo := d.store("local", "demo", "id1")
	d.put(kinds.AuthorizationModels(), "east", "widgets-demo", corev1alpha1.AuthorizationModel{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets-demo", Annotations: map[string]string{corev1alpha1.ResourceAnnotation: "widgets.example.com"}},
		Spec:       corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "demo", Cluster: "local"}},
	}, false)
	g := d.generation(demo)
	if steps := apimodel.Make(g.Input); len(g.Has) != 0 || len(steps.Delete) != 0 {
		t.Errorf("has %v, would delete %v", g.Has, steps.Delete)
	}
}

func TestABindingInAnotherClusterIsNotOursToHold(t *testing.T) {
	d := newDesk(t)
	binding := d.put(kinds.Bindings(), "east", "b", json.RawMessage(localBinding), false)
	r := &reconciler{objects: d.objects, view: d.view} // It has no API server to write to.
	if results, err := r.holdBinding(t.Context(), binding); len(results) != 0 || err != nil {
		t.Errorf("results %+v, %v", results, err)
	}
}

func TestAModuleHereIsToldWhatBecameOfItInTheStoreOfAnotherCluster(t *testing.T) {
	d := newDesk(t)
	guest := d.module("guest", corev1alpha1.StoreRef{Name: "demo", Cluster: "east"}, false)
	for state, want := range map[corev1alpha1.ModuleState]string{"": plan.ReasonStorePending, "Merged": plan.ReasonMerged, "Rejected": plan.ReasonRejected} {
		s := corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Status: corev1alpha1.StoreStatus{StoreID: "id1"}}
		if state != "" {
			s.Status.Modules = []corev1alpha1.ModuleStatus{{Source: "authorizationmodel/local/guest", State: state}}
		}
		foreign := d.put(kinds.Stores(), "east", "demo", s, false)
		if got := d.Keys(foreign); !slices.Equal(got, []event.Key{foreign}) || !slices.Equal(d.Keys(guest), got) {
			t.Errorf("the Store touches %v, the module %v", got, d.Keys(guest))
		}
		in := d.input(foreign, plan.Observed{})
		c := meta.FindStatusCondition(plan.ModuleStatus(in, plan.Observed{}, in.Modules[0]).Conditions, corev1alpha1.Merged)
		if c.Reason != want || (c.Status == metav1.ConditionTrue) != (state == "Merged") {
			t.Errorf("%s: %+v", state, c)
		}
	}
}
