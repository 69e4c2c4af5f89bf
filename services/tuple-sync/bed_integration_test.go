//go:build integration

package tuplesync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
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
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
)

func TestMain(m *testing.M) { testbed.Main(m) }

const (
	soon = 20 * time.Second
	calm = 300 * time.Millisecond
	// docs is a model of documents, folders one of folders too.
	docs = `model
  schema 1.1
type user
type document
  relations
    define owner: [user]
    define viewer: [user] or owner
`
	folders = docs + `type folder
  relations
    define reader: [user]
`
)

// bed is the surroundings of a tuple-sync: real servers; the tests do what store-sync does.
type bed struct {
	t    *testing.T
	kube *testbed.KubeServer
	nats *testbed.NATSServer
	fga  *testbed.OpenFGAServer
	// openFGA and api are the test's own hands; what they do is not counted.
	openFGA *fga.Client
	api     dynamic.Interface
	js      jetstream.JetStream

	mu sync.Mutex
	// calls to OpenFGA, reads too.
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

func (b *bed) called() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.calls)
}

// quiet runs what should change nothing, waits, and wants no write to have happened.
func (b *bed) quiet(what string, do func()) {
	b.t.Helper()
	openFGA, kube := b.fga.Writes(), b.kube.Writes()
	do()
	b.settled()
	if n, k := b.fga.Writes()-openFGA, b.kube.Writes()-kube; n != 0 || k != 0 {
		b.t.Errorf("%s made %d writes to OpenFGA and %d to the API server (%v)", what, n, k, b.kube.WritesByOp())
	}
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

// running is a tuple-sync.
type running struct {
	t    *testing.T
	url  string
	stop context.CancelFunc
	done chan error
}

// serve starts a tuple-sync that ends with the test at the latest.
func (b *bed) serve() *running {
	b.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	cfg := tuplesync.Defaults()
	cfg.NATS.URL, cfg.OpenFGA = b.nats.URL(), b.fga.Config()
	cfg.RPC.Auth, cfg.RPC.Listen = rpc.None, listener.Addr().String()
	cfg.Embed.Kube, cfg.Embed.Listener = b.kube.Config(), listener
	cfg.Embed.Log = slog.New(slog.NewTextHandler(b.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	r := &running{t: b.t, url: "http://" + listener.Addr().String(), stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- tuplesync.Run(ctx, cfg) }()
	b.t.Cleanup(r.end)
	return r
}

// end stops the service in order and wants it to go well.
func (r *running) end() {
	r.stop()
	if err, open := <-r.done; open && err != nil {
		r.t.Errorf("tuple-sync ended with %v", err)
	} else if open {
		close(r.done)
	}
}

// tuple reads object#relation@user.
func tuple(text string) corev1alpha1.Tuple {
	object, rest, _ := strings.Cut(text, "#")
	relation, user, _ := strings.Cut(rest, "@")
	return corev1alpha1.Tuple{Object: object, Relation: relation, User: user}
}

func tuples(texts ...string) []corev1alpha1.Tuple {
	list := make([]corev1alpha1.Tuple, len(texts))
	for i, text := range texts {
		list[i] = tuple(text)
	}
	return list
}

// many are n tuples from the given number on.
func many(from, n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("document:%03d#viewer@user:1", from+i))
	}
	return list
}

func (b *bed) store(name string, texts ...string) {
	b.t.Helper()
	b.kube.Apply(b.t, topology.Stores(), name, corev1alpha1.StoreSpec{CoreModule: "module core", Tuples: tuples(texts...)})
}

func (b *bed) module(name, store string, texts ...string) {
	b.t.Helper()
	b.kube.Apply(b.t, topology.AuthorizationModels(), name, corev1alpha1.AuthorizationModelSpec{
		StoreRef: corev1alpha1.StoreRef{Name: store}, Model: "module " + name, Tuples: tuples(texts...),
	})
}

// writeModel writes a model to an OpenFGA store.
func (b *bed) writeModel(storeID, dsl string) string {
	b.t.Helper()
	m, err := transformer.TransformDSLToProto(dsl)
	if err != nil {
		b.t.Fatal(err)
	}
	id, err := b.openFGA.WriteModel(b.t.Context(), storeID, m)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// synced does what store-sync does for a Store: an OpenFGA store with a model, named in
// the status. It returns the store's id.
func (b *bed) synced(name, dsl string) string {
	b.t.Helper()
	id, err := b.openFGA.CreateStore(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	b.modelled(name, id, dsl)
	return id
}

func (b *bed) modelled(name, storeID, dsl string) {
	b.t.Helper()
	b.rule(topology.Stores(), name, corev1alpha1.ModelSynced, map[string]any{
		"storeId": storeID, "authorizationModelId": b.writeModel(storeID, dsl),
	})
}

// merged is store-sync's word that a module is part of the model.
func (b *bed) merged(name string) {
	b.t.Helper()
	b.rule(topology.AuthorizationModels(), name, corev1alpha1.Merged, map[string]any{})
}

func (b *bed) rule(kind topology.Kind, name, condition string, status map[string]any) {
	b.t.Helper()
	u, err := b.resource(kind).Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	status["conditions"] = []metav1.Condition{{
		Type: condition, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: u.GetGeneration(), LastTransitionTime: metav1.Now(),
	}}
	patch, err := json.Marshal(map[string]any{
		"apiVersion": kind.Group + "/" + kind.Version, "kind": kind.Kind, "metadata": map[string]any{"name": name}, "status": status,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	force := true
	options := metav1.PatchOptions{FieldManager: topology.StoreSync, Force: &force}
	if _, err := b.resource(kind).Patch(b.t.Context(), name, types.ApplyPatchType, patch, options, "status"); err != nil {
		b.t.Fatal(err)
	}
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

// strip takes all finalizers off by force.
func (b *bed) strip(kind topology.Kind, name string) {
	b.t.Helper()
	_, err := b.resource(kind).Patch(b.t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
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

// found is an object of either kind with its TuplesSynced.
type found struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            corev1alpha1.StoreStatus `json:"status"`
}

func (b *bed) get(kind topology.Kind, name string) (*found, *metav1.Condition, error) {
	u, err := b.resource(kind).Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	f := &found{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, f); err != nil {
		return nil, nil, err
	}
	return f, meta.FindStatusCondition(f.Status.Conditions, corev1alpha1.TuplesSynced), nil
}

// await waits until an object's TuplesSynced has this reason, for its present generation, and returns the message.
func (b *bed) await(kind topology.Kind, name, reason string) string {
	b.t.Helper()
	message := ""
	testbed.Eventually(b.t, soon, func() error {
		f, c, err := b.get(kind, name)
		if err != nil {
			return err
		}
		if c == nil || c.Reason != reason || c.ObservedGeneration != f.Generation {
			return fmt.Errorf("%s %s at generation %d says %+v, want %s", kind.Kind, name, f.Generation, c, reason)
		}
		message = c.Message
		return nil
	})
	return message
}

func (b *bed) awaitGone(kind topology.Kind, name string) {
	b.t.Helper()
	testbed.Eventually(b.t, soon, func() error {
		if f, c, err := b.get(kind, name); err == nil {
			return fmt.Errorf("%s %s is still there, held by %v, saying %+v", kind.Kind, name, f.Finalizers, c)
		}
		return nil
	})
}

// holds reads what an OpenFGA store holds.
func (b *bed) holds(storeID string) []string {
	b.t.Helper()
	var texts []string
	for t, err := range b.openFGA.ReadTuples(b.t.Context(), storeID) {
		if err != nil {
			b.t.Fatal(err)
		}
		texts = append(texts, fmt.Sprintf("%s#%s@%s", t.GetKey().GetObject(), t.GetKey().GetRelation(), t.GetKey().GetUser()))
	}
	slices.Sort(texts)
	return texts
}

// awaitTuples waits until a store holds exactly these tuples.
func (b *bed) awaitTuples(storeID string, want ...string) {
	b.t.Helper()
	slices.Sort(want)
	testbed.Eventually(b.t, soon, func() error {
		if got := b.holds(storeID); !slices.Equal(got, want) {
			return fmt.Errorf("the store holds %d tuples, want %d: %.500v", len(got), len(want), got)
		}
		return nil
	})
}

// write changes a store behind tuple-sync's back.
func (b *bed) write(storeID string, add, remove []string) {
	b.t.Helper()
	keys := func(texts []string) []*openfgav1.TupleKey {
		var list []*openfgav1.TupleKey
		for _, text := range texts {
			t := tuple(text)
			list = append(list, &openfgav1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User})
		}
		return list
	}
	if err := b.openFGA.Write(b.t.Context(), storeID, "", keys(add), keys(remove)); err != nil {
		b.t.Fatal(err)
	}
}

// resync makes the service compare everything with OpenFGA.
func (b *bed) resync() {
	b.t.Helper()
	msg := nats.NewMsg(topology.WakeSubject(topology.TupleSync))
	msg.Header.Set(topology.ReplayHeader, "resync")
	if _, err := b.js.PublishMsg(b.t.Context(), msg); err != nil {
		b.t.Fatal(err)
	}
}
