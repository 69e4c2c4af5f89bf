package tuplesync

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/ledger"
)

// declare makes the Store ask for other tuples, and tells the process if it is to know.
func (s *fixture) declare(told bool, tuples ...corev1alpha1.Tuple) *thing {
	store := s.things[event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"}]
	store.tuples = tuples
	store.meta.Generation++
	if c := meta.FindStatusCondition(store.status.Conditions, corev1alpha1.ModelSynced); c != nil {
		judged := *c
		judged.ObservedGeneration = store.meta.Generation
		store.set(judged)
	}
	if change := s.changed(store); told {
		s.receive(change)
	}
	return store
}

func (s *fixture) says(store *thing, wanted bool) {
	s.t.Helper()
	if c := meta.FindStatusCondition(store.status.Conditions, corev1alpha1.Ready); (c.Status == "True" && c.ObservedGeneration == store.meta.Generation) != wanted {
		s.t.Errorf("it says %+v of generation %d", c, store.meta.Generation)
	}
}

func TestWhatIsOnlyTakenAwayTakesOneWriteOfTheStatus(t *testing.T) {
	s := newFixture(t, one, two)
	s.reconcile()
	clear(s.calls)
	store := s.declare(true, two)
	s.reconcile()
	s.expect("doc:2#viewer@user:2")
	s.says(store, true)
	if s.calls["status"] != 1 || s.calls["get"] != 1 || s.calls["write"] != 1 || len(store.status.ManagedTuples) != 1 {
		t.Errorf("calls are %v, recorded %v", s.calls, store.status.ManagedTuples)
	}
}

func TestNothingIsTakenOnTheWordOfTheBusAlone(t *testing.T) {
	s := newFixture(t, one)
	s.reconcile()
	store := s.declare(false)
	forged := store.change(t, false)
	s.declare(false, one)
	forged.ResourceVersion = store.meta.ResourceVersion // As if it were the newest state.
	s.receive(forged)
	clear(s.calls)
	s.reconcile()
	s.expect("doc:1#viewer@user:1")
	if s.calls["get"] == 0 || s.calls["write"] > 0 {
		t.Errorf("calls are %v", s.calls)
	}
}

// What is taken away is in no record before it is gone. However the pass ends: who wants it again gets it.
func TestWhatWasTakenInAPassThatDidNotEndIsThereWhenItIsWantedAgain(t *testing.T) {
	key := Key{Ledger: ledger.Key{StoreID: "S1"}}
	for name, c := range map[string]struct {
		// before and then are what becomes of the process.
		before, then func(s *fixture)
		// waits means that another may be at work still.
		waits bool
	}{
		"by the same process": {},
		"by the next one":     {then: func(s *fixture) { s.restart() }, waits: true},
		"by the one before": {before: func(s *fixture) {
			first := s.process
			s.restart()
			s.reconcile()
			s.process.next = first
		}, then: func(s *fixture) {
			s.process = s.process.next
			s.process.turn++
		}, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, one, two)
			s.reconcile()
			if c.before != nil {
				c.before(s)
			}
			s.declare(true, two)
			calls := 0
			s.disturb = func(op string) error {
				if op == "write" {
					calls++
				}
				if calls < 2 { // The call had its effect.
					return nil
				}
				return fault.Unavailable(errCrash)
			}
			if _, err := s.process.reconcile(key, false); !errors.Is(err, errCrash) {
				t.Fatalf("got %v", err)
			}
			s.expect("doc:2#viewer@user:2")
			s.disturb = nil
			store := s.declare(false, one, two)
			if c.then != nil {
				c.then(s)
			}
			s.receive(s.latest[store.key()])
			s.reconcile()
			s.expect("doc:1#viewer@user:1", "doc:2#viewer@user:2")
			s.says(store, !c.waits)
			s.wait(s.world)
			s.reconcile()
			s.says(store, true)
			s.expect("doc:1#viewer@user:1", "doc:2#viewer@user:2")
		})
	}
}
