//go:build integration

package proof

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// A Store is deleted without its finalizers and created again while no service runs. It may keep the OpenFGA store of
// its predecessor, but none of its tuples.
func TestReplacedStoreDoesNotGrantRightsOfPredecessor(t *testing.T) {
	const name = "replaced"
	s := startInProcessServices(t, topology.Watcher)
	stops := []func(){s.start(t, topology.StoreSync), s.start(t, topology.TupleSync)}
	spec := corev1alpha1.StoreSpec{CoreModule: core, Tuples: []corev1alpha1.Tuple{tuple("before"), tuple("both")}}
	s.kube.Apply(t, kinds.Stores(), name, spec)
	s.says(t, kinds.Stores(), name, metav1.ConditionTrue, "Ready")
	for _, stop := range stops {
		stop()
	}
	stores := s.objects.Resource(kinds.Stores().GroupVersionResource())
	if _, err := stores.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := stores.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	spec.Tuples = []corev1alpha1.Tuple{tuple("after"), tuple("both")}
	s.kube.Apply(t, kinds.Stores(), name, spec)
	s.start(t, topology.StoreSync)
	s.start(t, topology.TupleSync)
	s.says(t, kinds.Stores(), name, metav1.ConditionTrue, "Ready")
	testenv.Eventually(t, time.Minute, func() error {
		found, err := s.openFGA.FindStores(t.Context(), name)
		if err != nil || len(found) != 1 {
			return fmt.Errorf("OpenFGA has %v, %w", found, err)
		}
		var held []string
		for t, err := range s.openFGA.ReadTuples(t.Context(), found[0].ID) {
			if err != nil {
				return err
			}
			held = append(held, t.GetKey().GetObject())
		}
		slices.Sort(held)
		if want := []string{tuple("after").Object, tuple("both").Object}; !slices.Equal(held, want) {
			return fmt.Errorf("the store holds %v, want %v", held, want)
		}
		return nil
	})
}
