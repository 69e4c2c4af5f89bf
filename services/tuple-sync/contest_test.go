package tuplesync

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/declared"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

func TestUncertainRemovalDelaysReady(t *testing.T) {
	s := newFixture(t, one)
	s.reconcile()
	store := s.things[event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"}]
	store.tuples = nil
	store.meta.Generation++
	s.publish(store)
	var m *simulatedObject
	var next *simulatedProcess
	s.disturb = func(op string) error {
		if op != "write" {
			return nil
		}
		s.disturb = nil
		frozen := s.simulatedProcess
		s.restart() // Another takes over, and somebody wants what the one before removes.
		m = s.module("m", one)
		s.reconcile()
		next, s.simulatedProcess = s.simulatedProcess, frozen
		s.disturb = func(string) error { return fault.Unavailable(errCrash) }
		return nil
	}
	if _, err := s.simulatedProcess.reconcile(fromDeclared(declared.Key{StoreID: "S1"}), false); !errors.Is(err, errCrash) {
		t.Fatalf("got %v", err)
	}
	s.expect()
	says := func() string { return meta.FindStatusCondition(m.status.Conditions, corev1alpha1.TuplesSynced).Reason }
	if got := says(); got != plan.Syncing {
		t.Errorf("of a tuple that is gone the status says %s", got)
	}
	s.simulatedProcess, s.disturb = next, nil
	s.wait(s.simulatedServers)
	s.reconcile()
	s.expect("doc:1#viewer@user:1")
	if got := says(); got != plan.Synced {
		t.Errorf("in the end the status says %s", got)
	}
}

// A replica that was frozen writes after another has seen to it that nobody wants the tuple, and that no record names it.
func TestOvertakenPassRevertsItsWrites(t *testing.T) {
	s := newFixture(t, one)
	store := s.things[event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"}]
	overtaken := false
	s.disturb = func(op string) error {
		if op != "write" {
			return nil
		}
		s.disturb, overtaken = nil, true
		store.tuples = nil
		store.meta.Generation++
		s.changed(store)
		frozen := s.simulatedProcess
		s.restart()
		s.reconcile()
		s.wait(s.simulatedServers)
		s.reconcile()
		s.expect()
		if n := len(store.status.ManagedTuples); n > 0 {
			t.Errorf("%d tuples are recorded", n)
		}
		s.simulatedProcess = frozen
		s.lost[event.Key{}] = plan.TupleRecord{StoreID: "S1", Tuples: []tuple.Tuple{tuple.ParseDeclared(one)}} // It remembers.
		return nil
	}
	if _, err := s.simulatedProcess.reconcile(fromDeclared(declared.Key{StoreID: "S1"}), false); err != nil {
		t.Fatal(err)
	}
	if s.expect(); !overtaken || s.writes < 2 {
		t.Errorf("overtaken: %t; %d writes", overtaken, s.writes)
	}
}

// Two objects had the same tuple, and the one before died while it took it off the first: the other is to answer for it.
func TestUncertainWritesAreTransferredOnce(t *testing.T) {
	s := newFixture(t, one, two)
	m := s.module("m", one)
	s.reconcile()
	store := s.things[event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"}]
	store.tuples = nil
	store.meta.Generation++
	s.publish(store)
	calls := 0
	s.disturb = func(op string) error {
		if op == "read one" {
			return nil
		}
		if calls++; calls == 1 {
			return nil
		}
		return fault.Unavailable(errCrash) // The record is open, and that is all.
	}
	key := fromDeclared(declared.Key{StoreID: "S1"})
	if _, err := s.simulatedProcess.reconcile(key, false); !errors.Is(err, errCrash) {
		t.Fatalf("got %v", err)
	}
	s.disturb = nil
	s.restart()
	s.reconcile()
	s.expect("doc:1#viewer@user:1")
	if n := len(store.status.ManagedTuples); n != 2 {
		t.Errorf("%d of 2 tuples are still recorded", n)
	}
	for _, then := range []struct {
		when          string
		status, write int
	}{{when: "while the other may still write"}, {when: "when that is over", status: 3}, {when: "at rest"}} {
		clear(s.calls)
		s.dirty[key] = true
		if got := s.reconcile()["a"].Outcome; (got == eventv1.Outcome_OUTCOME_PENDING) != (then.when == "while the other may still write") {
			t.Errorf("%s the outcome is %v", then.when, got)
		}
		if s.calls["status"] != then.status || s.calls["write"] != then.write {
			t.Errorf("%s, calls are %v", then.when, s.calls)
		}
		s.wait(s.simulatedServers)
	}
	s.expect("doc:1#viewer@user:1")
	if len(store.status.ManagedTuples) != 0 || len(m.status.ManagedTuples) != 1 {
		t.Errorf("recorded are %v and %v", store.status.ManagedTuples, m.status.ManagedTuples)
	}
}
