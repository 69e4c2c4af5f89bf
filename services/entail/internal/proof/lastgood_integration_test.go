//go:build integration

package proof

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// awaitTuples waits until a Store has exactly these tuples.
func (s *inProcessServices) awaitTuples(t *testing.T, store string, want ...string) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func() error {
		found, err := list[corev1alpha1.Store](t.Context(), s.objects, kinds.Stores())
		if err != nil {
			return err
		}
		held := map[string]bool{}
		for tuple, err := range s.openFGA.ReadTuples(t.Context(), found[store].Status.StoreID) {
			if err != nil {
				return err
			}
			held[tuple.GetKey().GetObject()] = true
		}
		if got := slices.Sorted(maps.Keys(held)); !slices.Equal(got, want) {
			return fmt.Errorf("tuples are about %v, want %v", got, want)
		}
		return nil
	})
}

func TestInvalidEditKeepsTuplesAcrossOpenFGAOutage(t *testing.T) {
	s := startInProcessServices(t, topology.Watcher, topology.StoreSync, topology.TupleSync)
	of := func(names ...string) []corev1alpha1.Tuple {
		var all []corev1alpha1.Tuple
		for _, n := range names {
			all = append(all, corev1alpha1.Tuple{Object: "file:" + n, Relation: "viewer", User: "user:1"})
		}
		return all
	}
	apply := func(text string, tuples ...string) {
		s.kube.Apply(t, kinds.AuthorizationModels(), "files", corev1alpha1.AuthorizationModelSpec{
			StoreRef: corev1alpha1.StoreRef{Name: "bench-000"}, Model: "module files\ntype file\n  relations\n    define viewer" + text + "\n", Tuples: of(tuples...),
		})
	}
	id := s.stores(t, 1)["bench-000"]
	apply(": [user]", "a", "b")
	s.awaitTuples(t, "bench-000", "file:a", "file:b")
	apply(" [user]", "a", "c")
	s.awaitTuples(t, "bench-000", "file:a") // b is no longer declared; c waits for the model.
	if err := s.openFGA.DeleteStore(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.kube.Apply(t, kinds.Stores(), "bench-000", corev1alpha1.StoreSpec{CoreModule: core + "\ntype more\n"})
	testenv.Eventually(t, time.Minute, func() error {
		found, err := list[corev1alpha1.Store](t.Context(), s.objects, kinds.Stores())
		if err == nil && found["bench-000"].Status.StoreID == id {
			err = fmt.Errorf("the Store still names %s", id)
		}
		return err
	})
	testenv.Eventually(t, time.Minute, func() error {
		found, err := list[corev1alpha1.Store](t.Context(), s.objects, kinds.Stores())
		if err != nil {
			return err
		}
		for tuple, err := range s.openFGA.ReadTuples(t.Context(), found["bench-000"].Status.StoreID) {
			if err != nil || tuple.GetKey().GetObject() == "file:a" {
				return err
			}
		}
		return fmt.Errorf("the tuple that was live is gone")
	})
	apply(": [user]", "a", "c")
	s.awaitTuples(t, "bench-000", "file:a", "file:c")
}
