//go:build integration

package storesync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
	storesync "github.com/entail-dev/entail/services/store-sync"
)

func TestMain(m *testing.M) { testbed.Main(m) }

const (
	soon   = 20 * time.Second
	calm   = 400 * time.Millisecond
	coreV1 = "module core\n\ntype user\n\ntype document\n  relations\n    define owner: [user]\n"
)

// dsl is a module that defines one type.
func dsl(name string) string {
	return fmt.Sprintf("module %s\n\ntype %s\n  relations\n    define reader: [user]\n", name, name)
}

// bed is the surroundings of a store-sync: real servers, and somebody who publishes what happens in Kubernetes.
type bed struct {
	t    *testing.T
	kube *testbed.KubeServer
	nats *testbed.NATSServer
	fga  *testbed.OpenFGAServer
	// openFGA and api are the test's own hands; what they do is not counted.
	openFGA *fga.Client
	api     dynamic.Interface
	js      jetstream.JetStream

	mu    sync.Mutex
	calls map[string]int
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, kube: testbed.Kube(t), nats: testbed.NATS(t), fga: testbed.OpenFGA(t), calls: map[string]int{}}
	b.openFGA, b.api, b.js = b.fga.Client(t), b.kube.Objects(t), b.nats.JetStream(t)
	if err := topology.Ensure(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	b.watchOpenFGA(nil)
	return b
}

// watchOpenFGA counts every call, and fails those that fail says.
func (b *bed) watchOpenFGA(fail testbed.Fault) {
	b.fga.FailBefore(func(ctx context.Context, op string) error {
		b.mu.Lock()
		b.calls[op]++
		b.mu.Unlock()
		if fail == nil {
			return nil
		}
		return fail(ctx, op)
	})
}

// reset forgets the calls counted so far and returns a function that tells those since.
func (b *bed) reset() (openFGA func() map[string]int, kube func() int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = map[string]int{}
	before := b.kube.Writes()
	return b.called, func() int { return b.kube.Writes() - before }
}

func (b *bed) called() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.calls)
}

// settled waits until nothing has been called for a while.
func (b *bed) settled() {
	b.t.Helper()
	state := func() string { return fmt.Sprint(b.called(), b.kube.WritesByOp()) }
	last, since := state(), time.Now()
	testbed.Eventually(b.t, 2*time.Minute, func() error {
		if now := state(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < calm {
			return errors.New("still busy")
		}
		return nil
	})
}

// running is a store-sync.
type running struct {
	t    *testing.T
	url  string
	stop context.CancelFunc
	done chan error
}

// serve starts a store-sync that ends with the test at the latest.
func (b *bed) serve(edit ...func(*storesync.Config)) *running {
	b.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	cfg := storesync.Defaults()
	cfg.NATS.URL, cfg.OpenFGA = b.nats.URL(), b.fga.Config()
	cfg.RPC.Auth, cfg.RPC.Listen = rpc.None, listener.Addr().String()
	cfg.Embed.Kube, cfg.Embed.Listener = b.kube.Config(), listener
	cfg.Embed.Log = slog.New(slog.NewTextHandler(b.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, f := range edit {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	r := &running{t: b.t, url: "http://" + listener.Addr().String(), stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- storesync.Run(ctx, cfg) }()
	b.t.Cleanup(r.end)
	return r
}

// end stops the service in order and wants it to go well.
func (r *running) end() {
	r.stop()
	if err, open := <-r.done; open && err != nil {
		r.t.Errorf("store-sync ended with %v", err)
	} else if open {
		close(r.done)
	}
}

func storeSpec(edit ...func(*corev1alpha1.StoreSpec)) corev1alpha1.StoreSpec {
	spec := corev1alpha1.StoreSpec{CoreModule: coreV1}
	for _, f := range edit {
		f(&spec)
	}
	return spec
}

func (b *bed) applyStore(name string, edit ...func(*corev1alpha1.StoreSpec)) {
	b.t.Helper()
	b.kube.Apply(b.t, topology.Stores(), name, storeSpec(edit...))
}

func (b *bed) applyModule(name, store, text string) {
	b.t.Helper()
	b.kube.Apply(b.t, topology.AuthorizationModels(), name,
		corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: store}, Model: text})
}

func (b *bed) resource(kind topology.Kind) dynamic.NamespaceableResourceInterface {
	return b.api.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Resource})
}

func (b *bed) delete(kind topology.Kind, name string) {
	b.t.Helper()
	if err := b.resource(kind).Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// patch merges into the Store demo.
func (b *bed) patch(patch string, subresources ...string) {
	b.t.Helper()
	options := metav1.PatchOptions{FieldManager: "test"}
	if _, err := b.resource(topology.Stores()).Patch(b.t.Context(), "demo", types.MergePatchType, []byte(patch), options, subresources...); err != nil {
		b.t.Fatal(err)
	}
}

// applyStatus is what tuple-sync does: its own part of a status.
func (b *bed) applyStatus(kind topology.Kind, name string, status any) {
	b.t.Helper()
	patch, err := json.Marshal(map[string]any{
		"apiVersion": kind.Group + "/" + kind.Version, "kind": kind.Kind,
		"metadata": map[string]any{"name": name}, "status": status,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	options := metav1.PatchOptions{FieldManager: topology.TupleSync}
	if _, err := b.resource(kind).Patch(b.t.Context(), name, types.ApplyPatchType, patch, options, "status"); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) get(kind topology.Kind, name string, into any) error {
	u, err := b.resource(kind).Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

func (b *bed) store(name string) *corev1alpha1.Store {
	b.t.Helper()
	var s corev1alpha1.Store
	if err := b.get(topology.Stores(), name, &s); err != nil {
		b.t.Fatal(err)
	}
	return &s
}

// await waits until a Store has these conditions, each "Type=Status/Reason", of its present generation.
func (b *bed) await(name string, want ...string) *corev1alpha1.Store {
	b.t.Helper()
	var s corev1alpha1.Store
	testbed.Eventually(b.t, soon, func() error {
		s = corev1alpha1.Store{}
		if err := b.get(topology.Stores(), name, &s); err != nil {
			return err
		}
		return lacking(s.Status.Conditions, s.Generation, want)
	})
	return &s
}

func (b *bed) awaitModule(name string, want ...string) *corev1alpha1.AuthorizationModel {
	b.t.Helper()
	var m corev1alpha1.AuthorizationModel
	testbed.Eventually(b.t, soon, func() error {
		m = corev1alpha1.AuthorizationModel{}
		if err := b.get(topology.AuthorizationModels(), name, &m); err != nil {
			return err
		}
		return lacking(m.Status.Conditions, m.Generation, want)
	})
	return &m
}

func lacking(has []metav1.Condition, generation int64, want []string) error {
	for _, w := range want {
		found := slices.ContainsFunc(has, func(c metav1.Condition) bool {
			return fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason) == w && c.ObservedGeneration == generation
		})
		if !found {
			return fmt.Errorf("no %s at generation %d in %+v", w, generation, has)
		}
	}
	return nil
}

func messageOf(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// types are those of the model that is live in the Store demo.
func (b *bed) types() []string {
	b.t.Helper()
	m, err := b.openFGA.LatestModel(b.t.Context(), b.store("demo").Status.StoreID)
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, t := range m.GetTypeDefinitions() {
		names = append(names, t.GetType())
	}
	slices.Sort(names)
	return names
}

func (b *bed) expectTypes(want ...string) {
	b.t.Helper()
	slices.Sort(want)
	if got := b.types(); !slices.Equal(got, want) {
		b.t.Errorf("the model has the types %v, want %v", got, want)
	}
}

// named are the ids of the OpenFGA stores of a name.
func (b *bed) named(name string) []string {
	b.t.Helper()
	stores, err := b.openFGA.FindStores(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	ids := make([]string, len(stores))
	for i, s := range stores {
		ids[i] = s.ID
	}
	return ids
}

// resync makes the service compare everything with OpenFGA.
func (b *bed) resync() {
	b.t.Helper()
	msg := nats.NewMsg(topology.WakeSubject(topology.StoreSync))
	msg.Header.Set(topology.ReplayHeader, "resync")
	if _, err := b.js.PublishMsg(b.t.Context(), msg); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) list(kind topology.Kind) *unstructured.UnstructuredList {
	b.t.Helper()
	list, err := b.resource(kind).List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}
