//go:build integration

package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// says waits until Ready of the object's present generation has this status and reason, and returns the message.
func (s *inProcessServices) says(t *testing.T, kind kinds.Kind, name string, status metav1.ConditionStatus, reason string) (message string) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func() error {
		objects, err := list[declaredTypeStatus](t.Context(), s.objects, kind)
		if err != nil {
			return err
		}
		o := objects[name]
		c := meta.FindStatusCondition(o.Status.Conditions, corev1alpha1.Ready)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != o.Generation {
			return fmt.Errorf("%s of generation %d says %+v, want %s/%s; all: %+v", name, o.Generation, c, status, reason, o.Status.Conditions)
		}
		message = c.Message
		return nil
	})
	return message
}

func (s *inProcessServices) version(t *testing.T, kind kinds.Kind, name string) string {
	t.Helper()
	u, err := s.objects.Resource(kind.GroupVersionResource()).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u.GetResourceVersion()
}

func TestOutageIsReportedOnlyByWaitingObjects(t *testing.T) {
	for name, outage := range map[string]struct {
		begin func(s *inProcessServices) (end func())
		says  string
	}{
		"no answer": {func(s *inProcessServices) func() {
			over, end := context.WithCancel(t.Context())
			s.backend.FailBefore(func(ctx context.Context, _ string) error {
				select {
				case <-over.Done():
					return nil
				case <-ctx.Done():
					return fault.Unavailable(ctx.Err())
				}
			})
			return end
		}, "not answered since"},
		"refused": {func(s *inProcessServices) func() {
			s.backend.FailBefore(func(context.Context, string) error { return fault.Unavailable(errors.New("who are you?")) })
			return func() { s.backend.FailBefore(nil) }
		}, "who are you?"},
		"away": {func(s *inProcessServices) func() { s.backend.Stop(); return func() { s.backend.Start(t) } }, "not answered since"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startInProcessServices(t, topology.Watcher, topology.StoreSync, topology.TupleSync)
			stores, models := kinds.Stores(), kinds.AuthorizationModels()
			module := func(text string, tuples ...corev1alpha1.Tuple) corev1alpha1.AuthorizationModelSpec {
				return corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "calm"}, Model: text, Tuples: tuples}
			}
			for _, store := range []string{"calm", "core", "tuples"} {
				s.kube.Apply(t, stores, store, corev1alpha1.StoreSpec{CoreModule: core})
				s.says(t, stores, store, metav1.ConditionTrue, "Ready")
			}
			before := s.version(t, stores, "calm")
			end := outage.begin(s)
			s.kube.Apply(t, stores, "fresh", corev1alpha1.StoreSpec{CoreModule: core})
			s.kube.Apply(t, stores, "core", corev1alpha1.StoreSpec{CoreModule: core + "type folder\n"})
			s.kube.Apply(t, stores, "tuples", corev1alpha1.StoreSpec{CoreModule: core, Tuples: []corev1alpha1.Tuple{tuple("1")}})
			s.kube.Apply(t, models, "module", module("module m\ntype team\n"))
			for _, store := range []string{"fresh", "core", "tuples"} {
				if message := s.says(t, stores, store, metav1.ConditionUnknown, corev1alpha1.BackendUnavailable); !strings.Contains(message, outage.says) {
					t.Errorf("%s says %q", store, message)
				}
			}
			s.says(t, models, "module", metav1.ConditionUnknown, corev1alpha1.BackendUnavailable)
			if after := s.version(t, stores, "calm"); after != before {
				t.Errorf("a Store in step was written to: version %s, then %s", before, after)
			}
			end()
			for _, store := range []string{"fresh", "core", "tuples"} {
				s.says(t, stores, store, metav1.ConditionTrue, "Ready")
			}
			s.says(t, models, "module", metav1.ConditionTrue, "Ready")
		})
	}
}

func TestDeletedOpenFGAStoreIsRecreatedAtNextChange(t *testing.T) {
	s := startInProcessServices(t, topology.Watcher, topology.StoreSync, topology.TupleSync)
	id := s.stores(t, 1)["bench-000"]
	s.says(t, kinds.Stores(), "bench-000", metav1.ConditionTrue, "Ready")
	if err := s.openFGA.DeleteStore(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.kube.Apply(t, kinds.Stores(), "bench-000", corev1alpha1.StoreSpec{CoreModule: core, Tuples: []corev1alpha1.Tuple{tuple("1")}})
	s.says(t, kinds.Stores(), "bench-000", metav1.ConditionTrue, "Ready")
	stores, err := list[corev1alpha1.Store](t.Context(), s.objects, kinds.Stores())
	if err != nil {
		t.Fatal(err)
	}
	now := stores["bench-000"].Status.StoreID
	if _, found, err := s.openFGA.ReadTuple(t.Context(), now, key("1")); err != nil || !found || now == id {
		t.Errorf("ready with store %s, before %s, and the tuple there: %t, %v", now, id, found, err)
	}
}
