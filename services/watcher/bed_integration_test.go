//go:build integration

package watcher_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher"
)

// within bounds every wait. A lease must be able to expire in it on a busy machine.
const within = 60 * time.Second

// testEnv holds the servers around a watcher, all real.
type testEnv struct {
	t    *testing.T
	kube *testenv.KubeServer
	nats *testenv.NATSServer
	js   jetstream.JetStream
	p    *publish.Publisher
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	b := &testEnv{t: t, kube: testenv.StartKube(t), nats: testenv.StartNATS(t)}
	b.js = b.nats.JetStream(t)
	b.p = publish.New(b.js)
	return b
}

// followed returns the kinds that tests change. No API server has objects of them by itself.
func followed() []string {
	return []string{kinds.Stores().GroupResource.String(), kinds.AuthorizationModels().GroupResource.String()}
}

// run runs a watcher in this process and returns the function that stops it cleanly.
func (b *testEnv) run() (stop func()) {
	b.t.Helper()
	stop, _ = b.runOn(b.kube.ServiceConfig(b.t, topology.Watcher))
	return stop
}

// runOn runs a watcher with its own connections to the servers, and returns its URL.
func (b *testEnv) runOn(kube *rest.Config) (stop func(), url string) {
	b.t.Helper()
	return b.runAs(watcher.Defaults(), kube)
}

func (b *testEnv) runAs(cfg watcher.Config, kube *rest.Config) (stop func(), url string) {
	b.t.Helper()
	cfg.RPC.Auth = rpc.AuthNone
	return b.runAsking(cfg, kube)
}

// runAsking runs a watcher that authenticates its callers as cfg requires.
func (b *testEnv) runAsking(cfg watcher.Config, kube *rest.Config) (stop func(), url string) {
	b.t.Helper()
	listener := testenv.ListenLoopback(b.t)
	cfg.NATS.URL = b.nats.URLOf(topology.Watcher)
	if len(cfg.Kinds) == 0 {
		cfg.Kinds = followed()
	}
	if cfg.Embed.Log == nil {
		cfg.Embed.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Embed.Kube, cfg.Embed.Listener = kube, listener
	running := testenv.Serve(b.t, listener, func(ctx context.Context) error { return watcher.Run(ctx, cfg) })
	return running.Stop, running.URL
}

// start starts a watcher in a process of its own.
func (b *testEnv) start(name string) testenv.Process {
	b.t.Helper()
	return testenv.SpawnService(b.t, topology.Watcher, b.nats, b.kube, "--identity", name, "--kinds", strings.Join(followed(), ","))
}

func (b *testEnv) stores() dynamic.ResourceInterface {
	kind := kinds.Stores()
	return b.kube.DynamicClient(b.t).Resource(kind.GroupVersionResource())
}

func (b *testEnv) apply(name, note string) {
	b.t.Helper()
	b.kube.Apply(b.t, kinds.Stores(), name, map[string]any{"coreModule": "module core # " + note})
}

func (b *testEnv) remove(name string) {
	b.t.Helper()
	if err := b.stores().Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func store(name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: name}
}

func (b *testEnv) last(name string) publish.StoredMessage {
	b.t.Helper()
	last, err := b.p.LastChange(b.t.Context(), store(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return last
}

// becomes waits until the stream holds the API server's state of every Store, and the marker is current.
func (b *testEnv) becomes() {
	b.t.Helper()
	testenv.Eventually(b.t, within, b.equal)
}

func (b *testEnv) equal() error {
	ctx, cancel := context.WithTimeout(b.t.Context(), 3*time.Second)
	defer cancel()
	list, err := b.stores().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	want := map[event.Key]unstructured.Unstructured{}
	for _, u := range list.Items {
		want[store(u.GetName())] = u
	}
	for head, err := range b.p.ReadAll(ctx, "local", kinds.Stores().GroupResource, false) {
		if err != nil {
			return err
		}
		u, exists := want[head.Key]
		delete(want, head.Key)
		if head.Deleted == exists || exists && head.Version != u.GetResourceVersion() {
			return fmt.Errorf("%s: version %s, deleted %v on the stream; version %s in the cluster", head.Key, head.Version, head.Deleted, u.GetResourceVersion())
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("%d Stores are not on the stream", len(want))
	}
	return b.current(ctx, kinds.Stores())
}

func (b *testEnv) current(ctx context.Context, kind kinds.Kind) error {
	marker, err := b.p.LastMarker(ctx, "local", kind.GroupResource)
	if err != nil {
		return err
	}
	streamID, err := b.p.StreamID(ctx)
	if err == nil && (marker.GetStream() != streamID || !marker.GetServed()) {
		err = fmt.Errorf("marker %v is not current", marker)
	}
	return err
}

func (b *testEnv) marker(kind kinds.Kind) (*eventv1.SnapshotMarker, error) {
	return b.p.LastMarker(b.t.Context(), "local", kind.GroupResource)
}

// order reads every message, and fails the test if one brings back an older state.
func (b *testEnv) order() {
	b.t.Helper()
	if err := topology.EnsureStreams(b.t.Context(), b.js, 1); err != nil {
		b.t.Fatal(err)
	}
	consumer, err := b.js.OrderedConsumer(b.t.Context(), topology.Changes, jetstream.OrderedConsumerConfig{})
	if err != nil {
		b.t.Fatal(err)
	}
	newest := map[string]event.Change{}
	consuming, err := consumer.Consume(func(msg jetstream.Msg) {
		if topology.IsServiceSubject(msg.Subject()) || topology.IsBarrierSubject(msg.Subject()) {
			return
		}
		c, err := topology.DecodeChange(msg)
		if err != nil {
			b.t.Errorf("message on %s: %v", msg.Subject(), err)
			return
		}
		if old, seen := newest[msg.Subject()]; seen && !c.IsNewerThan(old) {
			b.t.Errorf("%s: version %s came after %s", c.Key, c.ResourceVersion, old.ResourceVersion)
		}
		newest[msg.Subject()] = c
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { consuming.Stop(); <-consuming.Closed() })
}
