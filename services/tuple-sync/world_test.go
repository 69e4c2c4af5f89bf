package tuplesync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// Models of the simulated stores: the second knows one type more.
const (
	modelHead = `model
  schema 1.1
type user
type doc
  relations
    define viewer: [user, user with large]
`
	modelFolder = `type folder
  relations
    define owner: [user]
`
	modelTail = `condition large(size: int) {
  size > 10
}
`
)

// simulatedObject is an object at the simulated API server.
type simulatedObject struct {
	kind   kinds.Kind
	meta   metav1.ObjectMeta
	tuples []corev1alpha1.Tuple
	ref    string // of an AuthorizationModel
	status corev1alpha1.StoreStatus
}

func (a *simulatedObject) key() event.Key {
	return event.Key{Cluster: "local", GroupResource: a.kind.GroupResource, Name: a.meta.Name}
}

// set puts a condition in the place of the one of its type.
func (a *simulatedObject) set(c metav1.Condition) {
	a.status.Conditions = slices.Clone(a.status.Conditions)
	meta.SetStatusCondition(&a.status.Conditions, c)
}

func (a *simulatedObject) isStore() bool { return a.kind.Kind == "Store" }

func (a *simulatedObject) record() plan.TupleRecord {
	if len(a.status.ManagedTuples) == 0 {
		return plan.TupleRecord{}
	}
	return plan.TupleRecord{StoreID: a.status.ManagedTuplesStoreID, Tuples: tuple.ParseDeclaredList(a.status.ManagedTuples)}
}

// change is the object as it goes over the bus.
func (a *simulatedObject) change(t rapid.TB, deleted bool) event.Change {
	t.Helper()
	var object any = corev1alpha1.Store{ObjectMeta: a.meta, Spec: corev1alpha1.StoreSpec{CoreModule: "module m", Tuples: a.tuples}, Status: a.status}
	if !a.isStore() {
		object = corev1alpha1.AuthorizationModel{
			ObjectMeta: a.meta, Spec: corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: a.ref}, Tuples: a.tuples},
			Status: corev1alpha1.AuthorizationModelStatus{
				ManagedTuples: a.status.ManagedTuples, Ledger: a.status.Ledger, StoreID: a.status.ManagedTuplesStoreID, Conditions: a.status.Conditions,
			},
		}
	}
	return event.Change{
		Key: a.key(), Version: a.kind.Version, Kind: a.kind.Kind, UID: string(a.meta.UID),
		ResourceVersion: a.meta.ResourceVersion, Generation: a.meta.Generation, Deleted: deleted, Object: mustJSON(t, object), Epoch: "e",
	}
}

func mustJSON(t rapid.TB, object any) []byte {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// newReplica names a process that is started.
func (w *simulatedServers) newReplica() string {
	w.replicas++
	return fmt.Sprintf("replica-%d", w.replicas)
}

func (w *simulatedServers) now() time.Duration { return w.clock }

// simulatedServers is an API server and an OpenFGA server in one, in memory, whose every call can
// fail before or after its effect, or be overtaken by somebody else's change.
type simulatedServers struct {
	reading sync.Mutex
	rapid.TB
	tupleHistory
	things   map[event.Key]*simulatedObject
	latest   map[event.Key]event.Change // what a watch has to tell
	version  int
	clock    time.Duration
	replicas int
	contents map[string]map[tuple.ID]tuple.Tuple
	models   map[string]*openfgav1.AuthorizationModel
	foreign  map[tuple.ID]tuple.Tuple
	// lost holds the records of objects that were deleted after a finalizer was removed by force.
	lost map[event.Key]plan.TupleRecord
	// abandoned are tuples of objects that were deleted while their Store did not exist: these
	// go without a call to OpenFGA, and store-sync has the rest.
	abandoned map[string]map[tuple.ID]bool
	// disturb is called twice per call, before and after its effect.
	disturb func(op string) error
	// refuse is the server's own judgement of tuples, deny the API server's of objects.
	refuse func(tuple.Tuple) error
	deny   func(*simulatedObject) error
	// calls of each operation.
	calls map[string]int
	// writes that had an effect.
	writes int
	// broken is the first violation of an invariant.
	broken error
	// tell is for the trace of a test.
	tell func(format string, args ...any)
	// fresh means that the process knows the newest state of everything.
	fresh func() bool
}

func newSimulatedServers(t rapid.TB) *simulatedServers {
	t.Helper()
	w := &simulatedServers{
		TB: t, tupleHistory: newHistory(), things: map[event.Key]*simulatedObject{}, latest: map[event.Key]event.Change{},
		contents: map[string]map[tuple.ID]tuple.Tuple{}, models: map[string]*openfgav1.AuthorizationModel{},
		foreign: map[tuple.ID]tuple.Tuple{}, lost: map[event.Key]plan.TupleRecord{}, abandoned: map[string]map[tuple.ID]bool{},
		refuse: func(tuple.Tuple) error { return nil }, deny: func(*simulatedObject) error { return nil }, calls: map[string]int{},
		tell: func(string, ...any) {}, fresh: func() bool { return false },
	}
	for id, dsl := range map[string]string{"small": modelHead + modelTail, "big": modelHead + modelFolder + modelTail} {
		m, err := transformer.TransformDSLToProto(dsl)
		if err != nil {
			t.Fatal(err)
		}
		m.Id = id
		w.models[id] = m
	}
	return w
}

func (w *simulatedServers) call(op string, effect func() error) error {
	w.calls[op]++
	if w.disturb != nil {
		if err := w.disturb(op); err != nil {
			return err
		}
	}
	if err := effect(); err != nil {
		return err
	}
	w.check()
	if w.disturb != nil {
		return w.disturb(op)
	}
	return nil
}

// changed gives a thing its next version and tells the watch.
func (w *simulatedServers) changed(a *simulatedObject) event.Change {
	w.version++
	a.meta.ResourceVersion = strconv.Itoa(w.version)
	deleted := a.meta.DeletionTimestamp != nil && len(a.meta.Finalizers) == 0
	change := a.change(w, deleted)
	w.latest[a.key()] = change
	if deleted {
		delete(w.things, a.key())
		if r := a.record(); len(r.Tuples) > 0 {
			w.lost[a.key()] = r
		}
	}
	return change
}

// check holds the rule that nothing is in OpenFGA that no record lists. A store that no
// Store speaks for is left to store-sync.
func (w *simulatedServers) check() {
	for id, tuples := range w.contents {
		if !w.claimed(id) {
			continue
		}
		listed := maps.Clone(w.foreign)
		records := slices.Collect(maps.Values(w.lost))
		for _, a := range w.things {
			records = append(records, a.record())
		}
		for _, r := range records {
			for _, t := range r.Tuples {
				if r.StoreID == id {
					listed[t.ID] = t
				}
			}
		}
		for t := range tuples {
			if _, ok := listed[t]; !ok && w.broken == nil && !w.abandoned[id][t] && !w.restored[storedTuple{id, t}] {
				w.broken = fmt.Errorf("store %s holds %s, which is in nobody's record", id, t)
			}
		}
	}
}

// checkReady holds the rule that an object is ready only when store-sync says so of its generation, and
// its tuples are there.
func (w *simulatedServers) checkReady(a *simulatedObject) {
	ready, module := meta.FindStatusCondition(a.status.Conditions, corev1alpha1.Ready), corev1alpha1.Merged
	if a.isStore() {
		module = corev1alpha1.ModelSynced
	}
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != a.meta.Generation || !w.fresh() || w.broken != nil {
		return
	}
	if c := meta.FindStatusCondition(a.status.Conditions, module); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != a.meta.Generation {
		w.broken = fmt.Errorf("%s is ready, and store-sync says %+v", a.meta.UID, c)
	}
	for _, t := range tuple.ParseDeclaredList(a.tuples) {
		if held, ok := w.contents[w.home(a)][t.ID]; !ok || held != t {
			w.broken = fmt.Errorf("%s is ready without %s", a.meta.UID, t.ID)
		}
	}
}

func (w *simulatedServers) find(obj event.Change) (*simulatedObject, error) {
	a, ok := w.things[obj.Key]
	if !ok {
		return nil, kube.ErrNotFound
	}
	return a, nil
}

func (w *simulatedServers) Get(_ context.Context, kind kinds.Kind, _, name string) (change event.Change, err error) {
	err = w.call("get", func() error {
		a, err := w.find(event.Change{Key: event.Key{Cluster: "local", GroupResource: kind.GroupResource, Name: name}})
		if err == nil {
			change = a.change(w, false)
		}
		return err
	})
	return change, err
}

func (w *simulatedServers) ReadNewest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error) {
	now, err := w.Get(ctx, kind, "", obj.Key.Name)
	if errors.Is(err, kube.ErrNotFound) {
		now, err = obj, nil
		now.Deleted = true
	}
	return now, err
}

func (w *simulatedServers) RecordEvent(context.Context, event.Change, condition.EventContent) error {
	return nil
}

func (w *simulatedServers) ApplyStatus(_ context.Context, _ kinds.Kind, obj event.Change, status any) (change event.Change, err error) {
	err = w.call("status", func() error {
		a, err := w.find(obj)
		if err != nil {
			return err
		}
		if a.meta.ResourceVersion != obj.ResourceVersion || string(a.meta.UID) != obj.UID {
			return fault.Unavailable(kube.ErrConflict)
		}
		if err := w.deny(a); err != nil {
			return err
		}
		change = w.applyStatus(a, status)
		return nil
	})
	return change, err
}

func (w *simulatedServers) applyStatus(a *simulatedObject, status any) event.Change {
	before := a.status.DeepCopy()
	had := a.record()
	var applied corev1alpha1.StoreStatus
	if err := json.Unmarshal(mustJSON(w, status), &applied); err != nil {
		w.Fatal(err)
	}
	a.status.ManagedTuples, a.status.ManagedTuplesStoreID, a.status.TupleCount = applied.ManagedTuples, applied.ManagedTuplesStoreID, applied.TupleCount
	a.status.RemovedTuples = applied.RemovedTuples
	if !a.isStore() {
		a.status.ManagedTuplesStoreID = applied.StoreID
	}
	a.status.ObservedGeneration = applied.ObservedGeneration
	for _, c := range applied.Conditions {
		a.set(c)
	}
	w.checkReady(a)
	if equality.Semantic.DeepEqual(&a.status, before) {
		return a.change(w, false)
	}
	if !a.isStore() && a.meta.DeletionTimestamp != nil && w.storeOf(a) == nil && len(a.status.ManagedTuples) == 0 {
		for _, t := range had.Tuples {
			if w.abandoned[had.StoreID] == nil {
				w.abandoned[had.StoreID] = map[tuple.ID]bool{}
			}
			w.abandoned[had.StoreID][t.ID] = true
		}
	}
	w.writes++
	w.tell("  status of %s: %v, %+v", a.meta.UID, a.status.ManagedTuples, status)
	return w.changed(a)
}

func (w *simulatedServers) AddFinalizer(_ context.Context, _ kinds.Kind, obj event.Change, finalizer string) (change event.Change, err error) {
	err = w.call("hold", func() error {
		a, err := w.find(obj)
		if err != nil || string(a.meta.UID) != obj.UID {
			return kube.ErrNotFound
		}
		change = a.change(w, false)
		if slices.Contains(a.meta.Finalizers, finalizer) {
			return nil
		}
		if a.meta.DeletionTimestamp != nil {
			return fault.Unavailable(kube.ErrConflict)
		}
		a.meta.Finalizers = append(slices.Clone(a.meta.Finalizers), finalizer)
		w.writes++
		change = w.changed(a)
		return nil
	})
	return change, err
}

func (w *simulatedServers) RemoveFinalizer(_ context.Context, _ kinds.Kind, obj event.Change, finalizer string) (change event.Change, err error) {
	err = w.call("release", func() error {
		a, ok := w.things[obj.Key]
		if !ok || string(a.meta.UID) != obj.UID {
			change = obj
			change.Deleted = true
			return nil
		}
		if change = a.change(w, false); slices.Contains(a.meta.Finalizers, finalizer) {
			w.writes++
			change = w.withoutFinalizer(a, finalizer)
		}
		return nil
	})
	return change, err
}

func (w *simulatedServers) withoutFinalizer(a *simulatedObject, finalizer string) event.Change {
	a.meta.Finalizers = slices.DeleteFunc(slices.Clone(a.meta.Finalizers), func(f string) bool { return f == finalizer })
	return w.changed(a)
}

func (w *simulatedServers) ReadModel(_ context.Context, _, modelID string) (m *openfgav1.AuthorizationModel, err error) {
	err = w.call("model", func() error {
		if m = w.models[modelID]; m == nil {
			return fga.ErrModelNotFound
		}
		return nil
	})
	return m, err
}

// Write is two calls to the server: additions, then deletions.
func (w *simulatedServers) Write(_ context.Context, storeID, _ string, add, remove []*openfgav1.TupleKey) error {
	if len(add) > 0 {
		if err := w.call("write", func() error { return w.add(storeID, add) }); err != nil {
			return err
		}
	}
	if len(remove) == 0 {
		return nil
	}
	return w.call("write", func() error { w.remove(storeID, remove); return nil })
}

func (w *simulatedServers) add(storeID string, keys []*openfgav1.TupleKey) error {
	for _, k := range keys {
		if err := w.refuse(tuple.FromOpenFGA(k)); err != nil {
			return fmt.Errorf("%w: %w", fga.ErrInvalidTuple, err)
		}
	}
	if w.claimed(storeID) {
		w.writes++
	}
	if w.contents[storeID] == nil {
		return nil // What is in a deleted store nobody sees.
	}
	for _, k := range keys {
		t := tuple.FromOpenFGA(k)
		w.tell("  %s gets %v", storeID, t)
		if before, there := w.contents[storeID][t.ID]; !there || before != t {
			w.written[storedTuple{storeID, t.ID}] = w.tick()
		}
		delete(w.restored, storedTuple{storeID, t.ID})
		w.contents[storeID][t.ID] = t
	}
	return nil
}

func (w *simulatedServers) remove(storeID string, keys []*openfgav1.TupleKey) {
	if w.claimed(storeID) {
		w.writes++
	}
	// An object that still has tuples elsewhere is not here yet.
	wanted := w.wantedBy(storeID, func(a *simulatedObject) bool { r := a.record(); return r.StoreID == "" || r.StoreID == storeID })
	for _, k := range keys {
		t := tuple.FromOpenFGA(k)
		if _, ok := wanted[t.ID]; ok && w.fresh() && w.broken == nil {
			w.broken = fmt.Errorf("store %s loses %s, which is wanted before and after", storeID, t.ID)
		}
		w.tell("  %s loses %v", storeID, t)
		if was, there := w.contents[storeID][t.ID]; there {
			w.deleted(storeID, was)
		}
		delete(w.contents[storeID], t.ID)
	}
}

func (w *simulatedServers) GetStore(_ context.Context, storeID string) (store fga.Store, found bool, err error) {
	err = w.call("store", func() error { _, found = w.contents[storeID]; return nil })
	return store, found, err
}

func (w *simulatedServers) ReadTuples(_ context.Context, storeID string) iter.Seq2[*openfgav1.Tuple, error] {
	return func(yield func(*openfgav1.Tuple, error) bool) {
		if err := w.call("read", func() error { return nil }); err != nil {
			yield(nil, err)
			return
		}
		for _, t := range maps.Clone(w.contents[storeID]) {
			if !yield(w.stamped(storeID, t), nil) {
				return
			}
		}
	}
}
