package query

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
)

// apiObjects is an API server with these objects, by resource/name.
type apiObjects struct{ *sync.Map }

func (a apiObjects) Get(_ context.Context, kind kinds.Kind, _, name string) (event.Change, error) {
	o, ok := a.Load(kind.Resource + "/" + name)
	if !ok {
		return event.Change{}, fmt.Errorf("reading: %w", kube.ErrNotFound)
	}
	return o.(event.Change), nil
}

// set stores an object of generation 2 whose condition Ready is of the given generation.
func (a apiObjects) set(kind kinds.Kind, name, version string, ready metav1.ConditionStatus, observed int64) {
	data := fmt.Appendf(nil, `{"metadata":{"generation":2},"status":{"conditions":[`+
		`{"type":%q,"status":%q,"observedGeneration":%d,"message":"the reason"}]}}`, corev1alpha1.Ready, ready, observed)
	a.Store(kind.Resource+"/"+name, event.Change{UID: name, ResourceVersion: version, Object: data})
}

func TestAnswersWaitForMinObject(t *testing.T) {
	for name, test := range map[string]struct {
		after   string
		prepare func(*queryFixture, apiObjects)
		want    string
	}{
		"nothing":         {"", func(*queryFixture, apiObjects) {}, ""},
		"another kind":    {"pod/x", func(*queryFixture, apiObjects) {}, `invalid_argument: after "pod/x" is not store/NAME or authorizationmodel/NAME`},
		"no name":         {"store", func(*queryFixture, apiObjects) {}, `invalid_argument: after "store" is not store/NAME or authorizationmodel/NAME`},
		"the ready Store": {"store/a", func(*queryFixture, apiObjects) {}, ""},
		"a newer Store than the view's": {"store/a", func(_ *queryFixture, api apiObjects) {
			api.set(kinds.Stores(), "a", "90", metav1.ConditionTrue, 2)
		}, "deadline_exceeded: the answer is undecided: Store a is not in it after 8s: its present version has not arrived at tuple-sync"},
		"a Store that is being applied": {"store/a", func(_ *queryFixture, api apiObjects) {
			api.set(kinds.Stores(), "a", "1", metav1.ConditionTrue, 1)
		}, "deadline_exceeded: the answer is undecided: Store a is not in it after 8s: it is being applied"},
		"a Store that is not ready": {"Store/a", func(_ *queryFixture, api apiObjects) {
			api.set(kinds.Stores(), "a", "1", metav1.ConditionFalse, 2)
		}, "deadline_exceeded: the answer is undecided: Store a is not in it after 8s: it is not Ready: the reason"},
		"a ready module": {"authorizationmodels/m", func(w *queryFixture, api apiObjects) {
			w.module("m", "a", nil, two)
			api.set(kinds.AuthorizationModels(), "m", "2", metav1.ConditionTrue, 2)
		}, ""},
		"a deleted module": {"authorizationmodel/m", func(w *queryFixture, _ apiObjects) {
			w.module("m", "a", nil, two)
			w.remove("m")
		}, ""},
		"a module that the view still has": {"authorizationmodel/m", func(w *queryFixture, _ apiObjects) {
			w.module("m", "a", nil, two)
		}, "deadline_exceeded: the answer is undecided: AuthorizationModel m is not in it after 8s: its deletion has not arrived at tuple-sync"},
		"a module that never was": {"authorizationmodel/mm", func(w *queryFixture, _ apiObjects) {
			w.module("mx", "a", nil, two)
		}, `not_found: there is no AuthorizationModel "mm", and none was deleted; did you mean mx?`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, api := newQueryFixture(t, one), apiObjects{new(sync.Map)}
				api.set(kinds.Stores(), "a", "1", metav1.ConditionTrue, 2)
				test.prepare(w, api)
				s := w.server(fakeOpenFGA{})
				s.cfg.Kube = api
				_, err := s.Check(t.Context(), &tuplev1.CheckRequest{Store: "a", Key: viewerKey, After: test.after})
				if err == nil && test.want != "" || err != nil && err.Error() != test.want {
					t.Errorf("got %v, want %q", err, test.want)
				}
			})
		})
	}
}

func TestWaitEndsWhenObjectIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, api := newQueryFixture(t, one), apiObjects{new(sync.Map)}
		api.set(kinds.Stores(), "a", "1", metav1.ConditionFalse, 2)
		s := w.server(fakeOpenFGA{})
		s.cfg.Kube = api
		done := make(chan error, 1)
		go func() {
			_, err := s.Check(t.Context(), &tuplev1.CheckRequest{Store: "a", Key: viewerKey, After: "store/a"})
			done <- err
		}()
		synctest.Wait()
		api.set(kinds.Stores(), "a", "1", metav1.ConditionTrue, 2)
		if err := <-done; err != nil {
			t.Errorf("got %v, want an answer", err)
		}
	})
}
