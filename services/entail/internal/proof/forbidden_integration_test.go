//go:build integration

package proof

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// guarded is a Store that services may not patch for a while.
const guarded = "guarded"

// shows waits until the Store has a condition with this reason for its present generation.
func (s *inProcessServices) shows(t *testing.T, typ, reason string) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func() error {
		stores, err := list[corev1alpha1.Store](t.Context(), s.objects, kinds.Stores())
		if err != nil {
			return err
		}
		store := stores[guarded]
		c := meta.FindStatusCondition(store.Status.Conditions, typ)
		if c == nil || c.Reason != reason || c.ObservedGeneration != store.Generation {
			return fmt.Errorf("%s is %+v, want %s", typ, c, reason)
		}
		return nil
	})
}

func TestMissingRightIsReportedAndRetried(t *testing.T) {
	s := startInProcessServices(t, topology.Watcher)
	mayPatch := testenv.Right{Verb: "patch", GroupResource: kinds.Stores().GroupResource}
	give := s.kube.RevokeRight(t, topology.StoreSync, mayPatch)
	s.start(t, topology.StoreSync)
	spec := corev1alpha1.StoreSpec{CoreModule: core}
	s.kube.Apply(t, kinds.Stores(), guarded, spec)
	s.shows(t, corev1alpha1.StoreSynced, "Forbidden")
	give()
	s.shows(t, corev1alpha1.ModelSynced, "Merged")
	give = s.kube.RevokeRight(t, topology.TupleSync, mayPatch)
	s.start(t, topology.TupleSync)
	spec.Tuples = []corev1alpha1.Tuple{{Object: "doc:1", Relation: "viewer", User: "user:1"}}
	s.kube.Apply(t, kinds.Stores(), guarded, spec)
	s.shows(t, corev1alpha1.TuplesSynced, "Forbidden")
	give()
	s.shows(t, corev1alpha1.TuplesSynced, "Synced")
	if err := s.objects.Resource(kinds.Stores().GroupVersionResource()).Delete(t.Context(), guarded, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, time.Minute, func() error {
		if left, err := s.openFGA.FindStores(t.Context(), guarded); err != nil || len(left) > 0 {
			return fmt.Errorf("OpenFGA holds %v (%w)", left, err)
		}
		return nil
	})
}
