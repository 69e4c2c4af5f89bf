package tuplesync

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/tuple-sync/declared"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// fixture is a world with a process in it, and the Store "a", whose OpenFGA store is S1.
type fixture struct {
	t *testing.T
	*simulatedServers
	*simulatedProcess
}

func newFixture(t *testing.T, tuples ...corev1alpha1.Tuple) *fixture {
	t.Helper()
	s := &fixture{t: t, simulatedServers: newSimulatedServers(t)}
	s.simulatedProcess = start(s.simulatedServers, nil)
	store := s.newThing(kinds.Stores(), "a")
	store.tuples = tuples
	store.status.StoreID, store.status.AuthorizationModelID = "S1", "big"
	store.status.Conditions = []metav1.Condition{{Type: corev1alpha1.ModelSynced, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	s.contents["S1"] = map[tuple.ID]tuple.Tuple{}
	s.publish(store)
	return s
}

func (s *fixture) module(name string, tuples ...corev1alpha1.Tuple) *simulatedObject {
	m := s.newThing(kinds.AuthorizationModels(), name)
	m.ref, m.tuples = "a", tuples
	m.status.Conditions = []metav1.Condition{{Type: corev1alpha1.Merged, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	s.publish(m)
	return m
}

func (s *fixture) publish(a *simulatedObject) { s.receive(s.changed(a)) }

// reconcile works until nothing is left to do, and tells what was made of each object last.
func (s *fixture) reconcile() map[string]controller.Result {
	s.t.Helper()
	last := map[string]controller.Result{}
	for len(s.dirty) > 0 {
		for k := range s.dirty {
			delete(s.dirty, k)
			pass, err := s.simulatedProcess.reconcile(k, false)
			if err != nil {
				s.t.Fatalf("reconciling %s: %v", k, err)
			}
			for _, r := range pass.Results() {
				last[r.Change.Key.Name] = r
			}
		}
	}
	return last
}

func (s *fixture) expect(tuples ...string) {
	s.t.Helper()
	var got []string
	for id := range s.contents["S1"] {
		got = append(got, id.String())
	}
	slices.Sort(got)
	if !slices.Equal(got, tuples) {
		s.t.Errorf("S1 holds %v, want %v", got, tuples)
	}
	if s.broken != nil {
		s.t.Error(s.broken)
	}
}

//nolint:gochecknoglobals // Fixtures that no test changes.
var (
	one = corev1alpha1.Tuple{Object: "doc:1", Relation: "viewer", User: "user:1"}
	two = corev1alpha1.Tuple{Object: "doc:2", Relation: "viewer", User: "user:2"}
)

func TestConflictIsRetriedWithinPass(t *testing.T) {
	s := newFixture(t, one)
	store := s.things[event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"}]
	edited := false
	s.disturb = func(op string) error {
		if op == "write" && !edited {
			edited = true
			store.tuples = []corev1alpha1.Tuple{two}
			store.meta.Generation++
			s.changed(store) // The process is not told.
		}
		return nil
	}
	got := s.reconcile()["a"]
	s.expect("doc:2#viewer@user:2")
	if s.calls["get"] != 1 || got.Outcome != eventv1.Outcome_OUTCOME_APPLIED || got.Change.Generation != 2 {
		t.Errorf("%d reads, result %+v", s.calls["get"], got)
	}
}

func TestUnrelatedConflictCostsOneMoreWrite(t *testing.T) {
	s := newFixture(t, one)
	store := s.things[event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"}]
	s.disturb = func(op string) error {
		if op == "write" {
			s.disturb = nil
			store.status.Modules = []corev1alpha1.ModuleStatus{{Name: "core"}}
			s.changed(store)
		}
		return nil
	}
	s.reconcile()
	if s.calls["write"] != 1 || s.calls["status"] != 3 {
		t.Errorf("calls are %v", s.calls)
	}
}

func TestRefusedTupleIsIsolatedAndTriedOnce(t *testing.T) {
	var tuples []corev1alpha1.Tuple
	for i := range 64 {
		tuples = append(tuples, corev1alpha1.Tuple{Object: fmt.Sprintf("doc:%02d", i), Relation: "viewer", User: "user:1"})
	}
	s := newFixture(t, tuples...)
	s.refuse = func(tuple tuple.Tuple) error {
		if tuple.Object == "doc:13" {
			return errors.New("Invalid tuple 'x'. Reason: unlucky number")
		}
		return nil
	}
	got := s.reconcile()["a"]
	if n := len(s.contents["S1"]); n != 63 {
		t.Errorf("%d of 63 good tuples are written", n)
	}
	if got.Outcome != eventv1.Outcome_OUTCOME_REJECTED || !strings.Contains(got.Message, "1 of 64") || !strings.Contains(got.Message, "doc:13#viewer@user:1: unlucky number") {
		t.Errorf("result is %+v", got)
	}
	asked := s.calls["write"]
	if asked > 16 {
		t.Errorf("isolating one of 64 took %d calls", asked)
	}
	s.publish(s.things[got.Change.Key])
	s.reconcile()
	if s.calls["write"] != asked {
		t.Errorf("asked %d times more", s.calls["write"]-asked)
	}
}

func TestForgedChangeDoesNotGrant(t *testing.T) {
	s := newFixture(t)
	m := s.module("m", one)
	s.reconcile()
	m.meta.Generation++
	forged := s.changed(m)
	fake := *m
	fake.tuples = []corev1alpha1.Tuple{one, two}
	forged.Object = fake.change(t, false).Object
	s.receive(forged)
	s.disturb = func(string) error {
		if _, granted := s.contents["S1"][tuple.FromOpenFGA(&openfgav1.TupleKey{Object: two.Object, Relation: two.Relation, User: two.User}).ID]; granted {
			t.Error("what the API server does not say is granted")
		}
		return nil
	}
	s.reconcile()
	s.expect("doc:1#viewer@user:1")
}

func TestUnwritableObjectDoesNotBlockOthers(t *testing.T) {
	s := newFixture(t, one)
	s.module("bad", two)
	s.deny = func(a *simulatedObject) error {
		if a.meta.Name == "bad" {
			return fault.Terminal(kube.ErrTooLarge)
		}
		return nil
	}
	got := s.reconcile()
	s.expect("doc:1#viewer@user:1")
	if r := got["bad"]; r.Outcome != eventv1.Outcome_OUTCOME_REJECTED || !strings.Contains(r.Message, "too large") {
		t.Errorf("the bad one's result is %+v", r)
	}
	if got["a"].Outcome != eventv1.Outcome_OUTCOME_APPLIED {
		t.Errorf("the good one's result is %+v", got["a"])
	}
}

func TestUnreadableRecordIsNotGuessed(t *testing.T) {
	s := newFixture(t, two)
	store := s.things[event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"}]
	store.status.Ledger, store.status.ManagedTuplesStoreID = &corev1alpha1.Ledger{Encoding: corev1alpha1.EncodingZstd, Data: []byte("noise")}, "S1"
	s.contents["S1"][tuple.ParseDeclared(one).ID] = tuple.ParseDeclared(one)
	s.foreign[tuple.ParseDeclared(one).ID] = tuple.Tuple{}
	s.publish(store)
	got := s.reconcile()["a"]
	s.expect("doc:1#viewer@user:1")
	if got.Outcome != eventv1.Outcome_OUTCOME_REJECTED || !strings.Contains(got.Message, "status.ledger") || s.writes != 1 {
		t.Errorf("result %+v after %d writes, want the status alone", got, s.writes)
	}
	for _, c := range store.status.Conditions {
		if c.Type != corev1alpha1.ModelSynced && (c.Status != metav1.ConditionFalse || c.Reason != plan.RecordUnreadable || c.ObservedGeneration != 1) {
			t.Errorf("got condition %+v, want False/RecordUnreadable", c)
		}
	}
}

func TestUnreadableRecordWithForbiddenStatusDoesNotBlockOthers(t *testing.T) {
	s := newFixture(t, one)
	bad := s.module("bad")
	bad.status.Ledger, bad.status.ManagedTuplesStoreID = &corev1alpha1.Ledger{Encoding: corev1alpha1.EncodingZstd, Data: []byte("noise")}, "S1"
	s.publish(bad)
	s.deny = func(a *simulatedObject) error {
		if a == bad {
			return fault.Unavailable(kube.ErrForbidden)
		}
		return nil
	}
	s.reconcile()
	s.expect("doc:1#viewer@user:1")
	if !errors.Is(s.simulatedProcess.later, kube.ErrForbidden) {
		t.Errorf("got later %v, want the refusal", s.simulatedProcess.later)
	}
}

func TestForbiddenObjectIsReportedAndRetried(t *testing.T) {
	s := newFixture(t, one)
	bad := s.module("bad", two)
	s.disturb = func(op string) error {
		if op == "hold" && len(bad.meta.Finalizers) == 0 && s.calls["hold"] > 1 {
			return fault.Unavailable(kube.ErrForbidden)
		}
		return nil
	}
	key := fromDeclared(declared.Key{StoreID: "S1"})
	for range 2 {
		s.simulatedProcess.later = nil
		if _, err := s.simulatedProcess.reconcile(key, false); err != nil || !errors.Is(s.simulatedProcess.later, kube.ErrForbidden) {
			t.Fatalf("got %v, later %v", err, s.simulatedProcess.later)
		}
	}
	s.expect("doc:1#viewer@user:1")
	c := bad.status.Conditions[len(bad.status.Conditions)-1]
	if c.Reason != plan.Forbidden || c.ObservedGeneration != 1 || !strings.Contains(c.Message, "the API server forbids it") {
		t.Errorf("condition %+v", c)
	}
	writes := s.writes
	if _, err := s.simulatedProcess.reconcile(key, false); err != nil || s.writes != writes {
		t.Errorf("told once more: %d writes, %v", s.writes-writes, err)
	}
	s.disturb = nil
	s.dirty[key] = true
	s.reconcile()
	s.expect("doc:1#viewer@user:1", "doc:2#viewer@user:2")
}

func TestAlwaysStalePassIsRequeued(t *testing.T) {
	s := newFixture(t, one)
	store := s.things[event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"}]
	s.disturb = func(op string) error {
		if op == "status" {
			store.meta.Generation++
			s.changed(store)
		}
		return nil
	}
	_, err := s.simulatedProcess.reconcile(fromDeclared(declared.Key{StoreID: "S1"}), false)
	if !fault.IsUnavailable(err) || s.calls["status"] > 16 {
		t.Errorf("%d tries, then %v", s.calls["status"], err)
	}
}

func TestTuplesOfForceReplacedObjectAreRemoved(t *testing.T) {
	s := newFixture(t)
	s.module("m", one)
	s.reconcile()
	s.expect("doc:1#viewer@user:1")
	s.module("m", two) // Another object of the same name; its predecessor's deletion was never seen.
	s.lost[event.Key{}] = plan.TupleRecord{StoreID: "S1", Tuples: []tuple.Tuple{tuple.ParseDeclared(one)}}
	s.reconcile()
	s.expect("doc:2#viewer@user:2")
}

func TestTuplesOfForceDeletedObjectAreRemovedOnce(t *testing.T) {
	s := newFixture(t)
	m := s.module("m", one)
	s.reconcile()
	now := metav1.NewTime(time.Unix(1, 0))
	m.meta.Finalizers, m.meta.DeletionTimestamp = nil, &now
	tombstone := s.changed(m)
	s.simulatedProcess = start(s.simulatedServers, s.latest) // After a restart only the tombstone knows.
	got := s.reconcile()["m"]
	s.expect()
	if got.Outcome != eventv1.Outcome_OUTCOME_APPLIED || !got.Change.Deleted {
		t.Errorf("result is %+v", got)
	}
	s.contents["S1"][tuple.ParseDeclared(one).ID] = tuple.ParseDeclared(one) // Somebody else's from now on.
	s.receive(tombstone)
	s.reconcile()
	if len(s.contents["S1"]) != 1 {
		t.Error("a tuple of somebody else is gone")
	}
}

func TestLateWriteOfDeletedObjectIsReverted(t *testing.T) {
	s := newFixture(t)
	s.reconcile()
	m := s.module("m", one)
	var next *simulatedProcess
	s.disturb = func(op string) error {
		if op != "write" {
			return nil
		}
		s.disturb = nil
		now := metav1.NewTime(time.Unix(1, 0))
		m.meta.Finalizers, m.meta.DeletionTimestamp = nil, &now
		s.changed(m)
		frozen := s.simulatedProcess
		s.restart() // Another takes over.
		s.reconcile()
		s.expect()
		next, s.simulatedProcess = s.simulatedProcess, frozen
		s.disturb = func(string) error { return fault.Unavailable(errCrash) } // What comes to pass now nobody hears of.
		return nil
	}
	for k := range s.dirty {
		if _, err := s.simulatedProcess.reconcile(k, false); !errors.Is(err, errCrash) {
			t.Fatalf("got %v", err)
		}
	}
	s.expect("doc:1#viewer@user:1")
	s.simulatedProcess, s.disturb = next, nil
	s.wait(s.simulatedServers)
	s.reconcile()
	s.expect()
	before := s.writes
	s.restart()
	s.reconcile()
	s.wait(s.simulatedServers)
	s.reconcile()
	if s.writes != before {
		t.Errorf("%d writes by a process that finds all done", s.writes-before)
	}
}

func TestMissingModelKeepsTuples(t *testing.T) {
	s := newFixture(t, one, two)
	s.reconcile()
	store := s.things[event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"}]
	store.status.AuthorizationModelID = "unknown to the server"
	store.tuples = []corev1alpha1.Tuple{one}
	store.meta.Generation++
	s.publish(store)
	s.reconcile()
	s.expect("doc:1#viewer@user:1")
}

func TestChangeOfManyObjectsIsWrittenBeforeItIsRecorded(t *testing.T) {
	s := newFixture(t, one, two)
	var order []string
	s.disturb = func(op string) error {
		if n := len(order); n == 0 || order[n-1] != op {
			order = append(order, op)
		}
		return nil
	}
	s.reconcile()
	if got := strings.Join(order, " "); got != "model hold status store write status" {
		t.Errorf("calls were %s", got)
	}
}

func TestObjectsOfOtherClusterAreIgnored(t *testing.T) {
	s := newFixture(t, one)
	s.reconcile()
	before := maps.Clone(s.calls)
	guest := corev1alpha1.AuthorizationModel{
		ObjectMeta: metav1.ObjectMeta{Name: "guest", UID: "guest"},
		Spec:       corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "a", Cluster: "local"}, Tuples: []corev1alpha1.Tuple{two}},
	}
	key := event.Key{Cluster: "west", GroupResource: kinds.AuthorizationModels().GroupResource, Name: "guest"}
	s.receive(event.Change{Key: key, UID: "guest", ResourceVersion: "1", Generation: 1, Epoch: "w", Object: mustJSON(s, guest)})
	got := s.reconcile()["guest"]
	if err := s.declared.WriteOutageStatuses(t.Context(), declared.Key{StoreID: "S1"}, setup.Outage{}); err != nil {
		t.Error(err)
	}
	s.expect("doc:1#viewer@user:1")
	for _, call := range []string{"hold", "status", "write", "get"} {
		if s.calls[call] != before[call] {
			t.Errorf("%d calls to %s", s.calls[call]-before[call], call)
		}
	}
	if _, lives := s.state.Models.Get(key); !lives || got.Outcome != eventv1.Outcome_OUTCOME_REJECTED || !strings.Contains(got.Message, `cluster "west"`) {
		t.Errorf("the guest lives: %t; said of it is %+v", lives, got)
	}
}
