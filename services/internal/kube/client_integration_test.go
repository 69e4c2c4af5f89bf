//go:build integration

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

const finalizer = corev1alpha1.StoreFinalizer

func client(t *testing.T, server *testenv.KubeServer, service string) *kube.Client {
	t.Helper()
	c, err := kube.New(server.ServiceConfig(t, service), "local", service)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// apply creates a Store and returns its state.
func apply(t *testing.T, server *testenv.KubeServer, c *kube.Client, name string) event.Change {
	t.Helper()
	server.Apply(t, kinds.Stores(), name, corev1alpha1.StoreSpec{CoreModule: "module core"})
	return get(t, c, name)
}

func get(t *testing.T, c *kube.Client, name string) event.Change {
	t.Helper()
	change, err := c.Get(t.Context(), kinds.Stores(), "", name)
	if err != nil {
		t.Fatal(err)
	}
	return change
}

func store(t *testing.T, change event.Change) corev1alpha1.Store {
	t.Helper()
	var s corev1alpha1.Store
	if err := json.Unmarshal(change.Object, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func remove(t *testing.T, server *testenv.KubeServer, name string) {
	t.Helper()
	if err := server.DynamicClient(t).Resource(stores()).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func stores() schema.GroupVersionResource {
	return corev1alpha1.GroupVersion.WithResource(corev1alpha1.Stores)
}

func TestGetReturnsChange(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.StoreSync)
	change := apply(t, server, c, "a.name.with.dots")
	if change.Epoch == "" || change.UID == "" || change.ObservedAt.IsZero() || change.Generation != 1 || change.Deleted {
		t.Errorf("got %+v", change)
	}
	if s := store(t, change); s.Spec.CoreModule != "module core" || s.ManagedFields != nil {
		t.Errorf("got %+v", s)
	}
	fetched, err := c.FetchLargeObject(t.Context(), change.Key)
	if err != nil || string(fetched) != string(change.Object) {
		t.Errorf("fetched %s, %v; want %s", fetched, err, change.Object)
	}
	if _, err := c.Get(t.Context(), kinds.Stores(), "", "absent"); !errors.Is(err, kube.ErrNotFound) || fault.IsUnavailable(err) {
		t.Errorf("an absent object: %v; want %v", err, kube.ErrNotFound)
	}
	if _, err := c.Get(t.Context(), kinds.APIBindings(), "", "absent"); !errors.Is(err, kube.ErrNotServed) || errors.Is(err, kube.ErrNotFound) {
		t.Errorf("an absent kind: %v; want %v", err, kube.ErrNotServed)
	}
	strange := change.Key
	strange.Cluster = "another"
	if _, err := c.FetchLargeObject(t.Context(), strange); !fault.IsTerminal(err) {
		t.Errorf("an object of another cluster: %v; want a terminal error", err)
	}
	if server.Writes() != 0 {
		t.Errorf("reading wrote: %v", server.WritesByOp())
	}
}

func TestApplyStatusKeepsFieldsOfOthers(t *testing.T) {
	server := testenv.StartKube(t)
	stores, tuples := client(t, server, topology.StoreSync), client(t, server, topology.TupleSync)
	obj := apply(t, server, stores, "demo")
	conditions := func(kind string) []metav1.Condition {
		return condition.MergeConditions(nil, []string{kind}, 1, metav1.Now(), condition.New(kind, true, "Done", ""))
	}
	first, err := stores.ApplyStatus(t.Context(), kinds.Stores(), obj, corev1alpha1.StoreStatus{StoreID: "s-1", Conditions: conditions("StoreSynced")})
	if err != nil {
		t.Fatal(err)
	}
	managed := []corev1alpha1.Tuple{{Object: "a:1", Relation: "b", User: "c:1"}}
	after, err := tuples.ApplyStatus(t.Context(), kinds.Stores(), first,
		corev1alpha1.StoreStatus{ManagedTuples: managed, TupleCount: 1, Conditions: conditions("TuplesSynced")})
	if err != nil {
		t.Fatal(err)
	}
	status := store(t, after).Status
	if status.StoreID != "s-1" || len(status.ManagedTuples) != 1 || len(status.Conditions) != 2 {
		t.Errorf("got %+v, want the fields of both writers", status)
	}
	if after.UID != obj.UID || !after.IsNewerThan(obj) || after.Generation != 1 {
		t.Errorf("got %+v; want a newer state of the same generation", after)
	}
	after, err = tuples.ApplyStatus(t.Context(), kinds.Stores(), after, corev1alpha1.StoreStatus{Conditions: conditions("TuplesSynced")})
	if err != nil {
		t.Fatal(err)
	}
	if status := store(t, after).Status; status.StoreID != "s-1" || len(status.ManagedTuples) != 0 || len(status.Conditions) != 2 {
		t.Errorf("got %+v; want no tuples and the rest", status)
	}
	if n := server.WritesByOp()["PATCH /apis/core.platform-mesh.io/v1alpha1/stores/demo/status"]; n != 3 || server.Writes() != 3 {
		t.Errorf("counted %v; want 3", server.WritesByOp())
	}
}

func TestApplyStatusRequiresNewestState(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.TupleSync)
	first := apply(t, server, c, "demo")
	status := corev1alpha1.StoreStatus{StoreID: "s-1"}
	second, err := c.ApplyStatus(t.Context(), kinds.Stores(), first, status)
	if err != nil {
		t.Fatal(err)
	}
	status.StoreID = "s-2"
	if _, err := c.ApplyStatus(t.Context(), kinds.Stores(), first, status); !errors.Is(err, kube.ErrConflict) || !fault.IsUnavailable(err) {
		t.Errorf("from an old state: %v; want %v", err, kube.ErrConflict)
	}
	if _, err := c.ApplyStatus(t.Context(), kinds.Stores(), second, status); err != nil {
		t.Errorf("from the newest state: %v", err)
	}
	remove(t, server, "demo")
	if _, err := c.ApplyStatus(t.Context(), kinds.Stores(), second, status); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("of a deleted object: %v; want %v", err, kube.ErrNotFound)
	}
	apply(t, server, c, "demo")
	if _, err := c.ApplyStatus(t.Context(), kinds.Stores(), second, status); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("of a re-created object: %v; want %v", err, kube.ErrConflict)
	}
	if got := store(t, get(t, c, "demo")).Status.StoreID; got != "" {
		t.Errorf("the new object has status.storeId %q", got)
	}
}

func TestApplyStatusTooLargeIsTerminal(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.TupleSync)
	obj := apply(t, server, c, "demo")
	for _, size := range []int{2 << 20, 4 << 20} {
		status := corev1alpha1.StoreStatus{ManagedTuples: []corev1alpha1.Tuple{{Object: strings.Repeat("x", size)}}}
		if _, err := c.ApplyStatus(t.Context(), kinds.Stores(), obj, status); !errors.Is(err, kube.ErrTooLarge) || !fault.IsTerminal(err) {
			t.Errorf("%d bytes: %.300v; want %v", size, err, kube.ErrTooLarge)
		}
	}
	invalid := corev1alpha1.StoreStatus{Conditions: []metav1.Condition{{Type: "Ready", Reason: "not a reason"}}}
	if _, err := c.ApplyStatus(t.Context(), kinds.Stores(), obj, invalid); err == nil || fault.IsTerminal(err) || fault.IsUnavailable(err) {
		t.Errorf("an invalid status: %v; want an error that counts", err)
	}
}

func TestFinalizerHoldsObjectUntilRemoved(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.StoreSync)
	first := apply(t, server, c, "demo")
	held, err := c.AddFinalizer(t.Context(), kinds.Stores(), first, finalizer)
	if err != nil {
		t.Fatal(err)
	}
	// Add finalizers from an old state, next to a finalizer of another service, and from a state without the object.
	both, err := c.AddFinalizer(t.Context(), kinds.Stores(), first, corev1alpha1.TuplesFinalizer)
	if err != nil {
		t.Fatal(err)
	}
	both.Object = nil
	writes := server.Writes()
	if both, err = c.AddFinalizer(t.Context(), kinds.Stores(), both, finalizer); err != nil {
		t.Fatal(err)
	}
	if got := store(t, both).Finalizers; len(got) != 2 || server.Writes() != writes {
		t.Errorf("the finalizers are %v after %d more writes; want both after none", got, server.Writes()-writes)
	}
	remove(t, server, "demo")
	if _, err := c.AddFinalizer(t.Context(), kinds.Stores(), get(t, c, "demo"), "example.com/late"); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("adding one to an object in deletion: %v; want %v", err, kube.ErrConflict)
	}
	after, err := c.RemoveFinalizer(t.Context(), kinds.Stores(), held, finalizer)
	if err != nil || after.Deleted {
		t.Fatalf("removing one of two: deleted %v, %v", after.Deleted, err)
	}
	for range 2 { // The second time the object no longer exists.
		after, err = c.RemoveFinalizer(t.Context(), kinds.Stores(), after, corev1alpha1.TuplesFinalizer)
		if err != nil || !after.Deleted {
			t.Fatalf("removing the last: deleted %v, %v", after.Deleted, err)
		}
	}
	if _, err := c.Get(t.Context(), kinds.Stores(), "", "demo"); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("the object: %v; want %v", err, kube.ErrNotFound)
	}
	if _, err := c.AddFinalizer(t.Context(), kinds.Stores(), first, finalizer); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("adding one to a deleted object: %v; want %v", err, kube.ErrNotFound)
	}
}

func TestRemoveFinalizerIgnoresOtherUID(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.StoreSync)
	old, err := c.AddFinalizer(t.Context(), kinds.Stores(), apply(t, server, c, "demo"), finalizer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.RemoveFinalizer(t.Context(), kinds.Stores(), old, finalizer); err != nil {
		t.Fatal(err)
	}
	remove(t, server, "demo")
	fresh, err := c.AddFinalizer(t.Context(), kinds.Stores(), apply(t, server, c, "demo"), finalizer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddFinalizer(t.Context(), kinds.Stores(), old, corev1alpha1.TuplesFinalizer); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("adding: %v; want %v", err, kube.ErrNotFound)
	}
	if after, err := c.RemoveFinalizer(t.Context(), kinds.Stores(), old, finalizer); err != nil || !after.Deleted || after.UID != old.UID {
		t.Errorf("removing: %+v, %v; want the old object deleted", after, err)
	}
	if now := get(t, c, "demo"); now.ResourceVersion != fresh.ResourceVersion {
		t.Errorf("the namesake was changed: %s", now.Object)
	}
}

func TestAddFinalizerRetriesConflicts(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.StoreSync)
	obj := apply(t, server, c, "demo")
	for i := range 3 { // After each write, obj is older.
		patch := []byte(`{"metadata":{"labels":{"turn":"` + strings.Repeat("x", i+1) + `"}}}`)
		if _, err := server.DynamicClient(t).Resource(stores()).Patch(t.Context(), "demo", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	held, err := c.AddFinalizer(t.Context(), kinds.Stores(), obj, finalizer)
	if err != nil {
		t.Fatal(err)
	}
	if s := store(t, held); len(s.Finalizers) != 1 || s.Labels["turn"] != "xxx" {
		t.Errorf("got finalizers %v and labels %v; want both writers' work", s.Finalizers, s.Labels)
	}
}

func TestRecordEventIsRateLimited(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.StoreSync)
	obj := apply(t, server, c, "demo")
	for range 200 {
		note := condition.EventContent{Warning: true, Reason: "StoreRecreated", Message: strings.Repeat("long ", 1000)}
		if err := c.RecordEvent(t.Context(), obj, note); err != nil {
			t.Fatal(err)
		}
	}
	events := server.DynamicClient(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"})
	list, err := events.List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + obj.UID + ",reason=StoreRecreated"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(list.Items); n < 1 || n > 100 {
		t.Errorf("%d events; want at least one and not all of 200", n)
	}
	if server.Writes() != 0 {
		t.Errorf("events were counted as writes: %v", server.WritesByOp())
	}
}

func TestUnreachableServerIsUnavailable(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.StoreSync)
	obj := apply(t, server, c, "demo")
	server.Kill()
	if _, err := c.ApplyStatus(t.Context(), kinds.Stores(), obj, corev1alpha1.StoreStatus{}); !fault.IsUnavailable(err) {
		t.Errorf("got %v; want unavailable", err)
	}
	server.Start(t)
	testenv.Eventually(t, time.Minute, func() error {
		_, err := c.Get(t.Context(), kinds.Stores(), "", "demo")
		return err
	})
}

func TestNetworkErrorIsUnavailable(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.StoreSync)
	obj := apply(t, server, c, "demo")
	lost := errors.New("connection reset by peer")
	server.FailAfter(func(_ context.Context, op string) error {
		if strings.HasPrefix(op, "PATCH ") {
			return lost
		}
		return nil
	})
	status := corev1alpha1.StoreStatus{StoreID: "s-1"}
	if _, err := c.ApplyStatus(t.Context(), kinds.Stores(), obj, status); !fault.IsUnavailable(err) || !errors.Is(err, lost) {
		t.Errorf("got %v; want unavailable for the lost answer", err)
	}
	server.FailAfter(nil)
	if got := store(t, get(t, c, "demo")).Status.StoreID; got != "s-1" {
		t.Errorf("status.storeId is %q; want s-1: the server had done it", got)
	}
}

func TestReadNewestOfMissingObjectReturnsTombstone(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.StoreSync)
	first := apply(t, server, c, "brief")
	server.Apply(t, kinds.Stores(), "brief", corev1alpha1.StoreSpec{CoreModule: "module changed"})
	now, err := c.ReadNewest(t.Context(), kinds.Stores(), first)
	if err != nil || now.Deleted || !now.IsNewerThan(first) || store(t, now).Spec.CoreModule != "module changed" {
		t.Errorf("after a change the newest is %+v, %v", now, err)
	}
	remove(t, server, "brief")
	gone, err := c.ReadNewest(t.Context(), kinds.Stores(), now)
	if err != nil || !gone.Deleted || gone.UID != now.UID || !gone.IsNewerThan(now) || gone.ObservedAt.IsZero() {
		t.Errorf("after the deletion the newest is %+v, %v", gone, err)
	}
	another := apply(t, server, c, "brief")
	if got, err := c.ReadNewest(t.Context(), kinds.Stores(), now); err != nil || got.Deleted || got.UID != another.UID {
		t.Errorf("after another came the newest is %+v, %v; want %s", got, err, another.UID)
	}
	server.FailBefore(func(context.Context, string) error { return errors.New("the line is cut") })
	if got, err := c.ReadNewest(t.Context(), kinds.Stores(), now); err == nil || !fault.IsUnavailable(err) {
		t.Errorf("without the API server the newest is %+v, %v", got, err)
	}
}
