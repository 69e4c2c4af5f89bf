package storesync

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/store-sync/apimodel"
)

func TestWhatAnotherClusterMadeForAStoreHereStays(t *testing.T) {
	d := newDesk(t)
	demo := d.store("local", "demo", "id1")
	d.put(topology.AuthorizationModels(), "east", "widgets-demo", corev1alpha1.AuthorizationModel{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets-demo", Annotations: map[string]string{corev1alpha1.ResourceAnnotation: "widgets.example.com"}},
		Spec:       corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "demo", Cluster: "local"}},
	}, false)
	g := d.generation(demo)
	if steps := apimodel.Plan(g.Input); len(g.Has) != 0 || len(steps.Delete) != 0 {
		t.Errorf("has %v, would delete %v", g.Has, steps.Delete)
	}
}

func TestABindingInAnotherClusterIsNotOursToHold(t *testing.T) {
	d := newDesk(t)
	binding := d.put(topology.Bindings(), "east", "b", json.RawMessage(localBinding), false)
	r := &reconciler{objects: d.objects, view: d.view} // It has no API server to write to.
	if results, err := r.holdBinding(t.Context(), binding); len(results) != 0 || err != nil {
		t.Errorf("results %+v, %v", results, err)
	}
}
