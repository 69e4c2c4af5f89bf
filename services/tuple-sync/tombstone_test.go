package tuplesync

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// restart begins a process that knows what the bus holds: of each name the newest state, and the
// tombstones of those that had it before.
func (s *fixture) restart(tombstones ...event.Change) {
	s.simulatedProcess = start(s.simulatedServers, s.latest)
	for _, c := range tombstones {
		s.receive(c)
	}
}

// replaced is the tombstone of an object whose name another takes past all finalizers.
func (s *fixture) replaced(m *simulatedObject) event.Change {
	last := s.latest[m.key()]
	last.Deleted = true
	s.lost[event.Key{Name: string(m.meta.UID)}] = m.record()
	return last
}

func TestTuplesOfAllObjectsOfNameAreRemoved(t *testing.T) {
	s := newFixture(t)
	three := corev1alpha1.Tuple{Object: "doc:3", Relation: "viewer", User: "user:3"}
	var tombstones []event.Change
	for _, declared := range []corev1alpha1.Tuple{one, two, three} {
		m := s.module("m", declared)
		s.restart()
		s.reconcile()
		tombstones = append(tombstones, s.replaced(m))
	}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		s.restart(tombstones[order[0]], tombstones[order[1]])
		if got := s.reconcile()["m"]; got.Change.Deleted || got.Outcome != eventv1.Outcome_OUTCOME_APPLIED {
			t.Errorf("result is %+v, want that of the living object", got)
		}
		s.expect("doc:3#viewer@user:3")
	}
	before := s.writes
	s.restart(tombstones[:2]...)
	s.reconcile()
	if s.writes != before {
		t.Errorf("%d writes by a process that finds all done", s.writes-before)
	}
}

func TestForgedTombstoneOfLiveObjectIsIgnored(t *testing.T) {
	for name, version := range map[string]string{"as it is": "", "from the future": "999999"} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			m := s.module("m", one)
			s.reconcile()
			wrong := s.latest[m.key()]
			wrong.Deleted = true
			if version != "" {
				wrong.ResourceVersion = version
			}
			bus := maps.Clone(s.latest)
			delete(bus, m.key())
			s.simulatedProcess = start(s.simulatedServers, bus)
			s.receive(wrong)
			s.reconcile()
			s.expect("doc:1#viewer@user:1")
			m.tuples = []corev1alpha1.Tuple{two}
			s.publish(m)
			s.reconcile()
			s.expect("doc:2#viewer@user:2")
		})
	}
}

func TestClusterRewindRevokesLaterGrants(t *testing.T) {
	for name, restarted := range map[string]bool{"seen to go back": false, "told by the tombstone": true} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			m := s.module("m", one)
			s.reconcile()
			restored := *m
			m.tuples = []corev1alpha1.Tuple{one, two}
			m.meta.Generation++
			m.set(metav1.Condition{Type: corev1alpha1.Merged, Status: metav1.ConditionTrue, ObservedGeneration: 2})
			s.publish(m)
			s.reconcile()
			s.expect("doc:1#viewer@user:1", "doc:2#viewer@user:2")

			before := s.replaced(m)
			s.things[m.key()] = &restored
			s.lost[event.Key{Name: "before"}] = plan.TupleRecord{StoreID: "S1", Tuples: []tuple.Tuple{tuple.ParseDeclared(one), tuple.ParseDeclared(two)}}
			after := restored.change(t, false)
			after.Epoch = event.NextEpoch(after.Epoch)
			if restarted {
				s.latest[m.key()] = after
				s.restart(before)
			} else {
				s.receive(after)
			}
			s.reconcile()
			s.expect("doc:1#viewer@user:1")
		})
	}
}
