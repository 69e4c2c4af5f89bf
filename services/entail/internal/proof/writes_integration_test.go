//go:build integration

package proof

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// requests counts the requests of all services about Stores and AuthorizationModels, by operation.
func (s *inProcessServices) requests() map[string]int {
	about := s.kube.CallsByOp()
	maps.DeleteFunc(about, func(op string, _ int) bool {
		return !strings.Contains(op, "/stores/") && !strings.Contains(op, "/authorizationmodels/")
	})
	return about
}

// rest waits until no request has been made for one second.
func (s *inProcessServices) rest(t *testing.T) {
	t.Helper()
	last, since := s.requests(), time.Now()
	testenv.Eventually(t, time.Minute, func() error {
		if now := s.requests(); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if time.Since(since) < time.Second {
			return fmt.Errorf("still busy: %v", last)
		}
		return nil
	})
}

// costs makes a change, and requires at most so many writes and reads until the system is at rest.
func (s *inProcessServices) costs(t *testing.T, what string, writes, reads int, change func()) {
	t.Helper()
	before := s.requests()
	change()
	s.rest(t)
	var wrote, read int
	var made []string
	for op, n := range s.requests() {
		switch n -= before[op]; {
		case n == 0:
			continue
		case strings.HasPrefix(op, "GET "):
			read += n
		default:
			wrote += n
		}
		made = append(made, fmt.Sprintf("%d × %s", n, op))
	}
	slices.Sort(made)
	t.Logf("%s: %d writes, %d reads", what, wrote, read)
	if wrote > writes || read > reads {
		t.Errorf("%s took %d writes and %d reads, want at most %d and %d:\n%s", what, wrote, read, writes, reads, strings.Join(made, "\n"))
	}
}

// current waits until every condition of an object has the object's generation, as `kubectl wait` does.
func (s *inProcessServices) current(t *testing.T, kind kinds.Kind, name string) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func() error {
		objects, err := list[declaredTypeStatus](t.Context(), s.objects, kind)
		if err != nil {
			return err
		}
		o := objects[name]
		for _, c := range o.Status.Conditions {
			if c.ObservedGeneration != o.Generation {
				return fmt.Errorf("%s has observedGeneration %d; want %d", c.Type, c.ObservedGeneration, o.Generation)
			}
		}
		return nil
	})
}

func TestChangeNeedsMinimumWrites(t *testing.T) {
	s := startInProcessServices(t, topology.Watcher, topology.StoreSync, topology.TupleSync)
	stores, models := kinds.Stores(), kinds.AuthorizationModels()
	store := func(core string, tuples ...corev1alpha1.Tuple) func() {
		return func() {
			s.kube.Apply(t, stores, "demo", corev1alpha1.StoreSpec{CoreModule: core, Tuples: tuples})
			s.says(t, stores, "demo", metav1.ConditionTrue, "Ready")
			s.current(t, stores, "demo")
		}
	}
	module := func(text string, tuples ...corev1alpha1.Tuple) func() {
		return func() {
			s.kube.Apply(t, models, "part", corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "demo"}, Model: text, Tuples: tuples})
			s.says(t, models, "part", metav1.ConditionTrue, "Ready")
			s.current(t, models, "part")
			s.says(t, stores, "demo", metav1.ConditionTrue, "Ready")
		}
	}
	const part = "module part\ntype part\n  relations\n    define viewer: [user]\n"
	on := func(object string) corev1alpha1.Tuple {
		return corev1alpha1.Tuple{Object: object, Relation: "viewer", User: "user:1"}
	}
	s.costs(t, "a new Store", 5, 0, store(core, tuple("1")))
	// tuple-sync writes its intent and its result. store-sync then dates its conditions.
	s.costs(t, "another tuple", 3, 0, store(core, tuple("1"), tuple("2")))
	s.costs(t, "a tuple less", 3, 0, store(core, tuple("1")))
	s.costs(t, "a core that gives more", 3, 0, store(core+"type team\n", tuple("1")))
	// A change that revokes access is recorded first, and verified before that.
	s.costs(t, "a core that gives less", 3, 1, store(core, tuple("1")))
	// The Store names each new model. Both services start on a new module at once, so one sometimes finds that the
	// other has written to it since.
	s.costs(t, "a new module", 4+1+3, 1+3, module(part, on("part:1")))
	s.costs(t, "another tuple of a module", 3, 0, module(part, on("part:1"), on("part:2")))
	// The Store records what is removed.
	s.costs(t, "a tuple less of a module", 3+1, 0, module(part, on("part:1")))
	s.costs(t, "another tuple of a module once more", 3, 0, module(part, on("part:1"), on("part:2")))
	s.costs(t, "a module that gives more", 3+1, 0, module(part+"    define editor: [user]\n", on("part:1"), on("part:2")))
	s.costs(t, "a module that gives less", 3+1, 1, module(part, on("part:1"), on("part:2")))
	s.costs(t, "nothing", 0, 0, func() {})
}
