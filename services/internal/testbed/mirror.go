package testbed

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
)

// mirrorPause is the wait before the bus or the API server is tried again.
const mirrorPause = 50 * time.Millisecond

// Mirror publishes what is in Kubernetes and what becomes of it, as the watcher does,
// for tests of other services: they cannot import it. It can be held still, and made to
// publish everything again.
type Mirror struct {
	bed       *Bed
	kinds     []kinds.Kind
	origin    kube.Origin
	publisher *publish.Publisher
	// gate is locked while nothing is to be published.
	gate sync.Mutex
}

// Mirror starts one of all kinds that services follow, until the test ends.
func (b *Bed) Mirror() *Mirror {
	b.T.Helper()
	api, err := kube.New(b.Kube.Admin(), "local", "test")
	if err != nil {
		b.T.Fatal(err)
	}
	epoch, err := api.Epoch(b.T.Context())
	if err != nil {
		b.T.Fatal(err)
	}
	m := &Mirror{bed: b, kinds: kinds.All(), origin: kube.Origin{Cluster: "local", Epoch: epoch}, publisher: publish.New(b.JS)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.T.Context()))
	var following sync.WaitGroup
	b.T.Cleanup(func() { cancel(); following.Wait() })
	for _, kind := range m.kinds {
		if version, served := m.sweep(kind, false); served {
			following.Go(func() { m.follow(ctx, kind, version) })
		}
	}
	return m
}

// Replay publishes every object again, to be processed anew.
func (m *Mirror) Replay() {
	m.bed.T.Helper()
	for _, kind := range m.kinds {
		m.sweep(kind, true)
	}
}

// Hold publishes nothing until release is called.
func (m *Mirror) Hold() (release func()) {
	m.gate.Lock()
	return m.gate.Unlock
}

// sweep publishes all objects of a kind, and the marker that says so. A kind that is not
// served has none.
func (m *Mirror) sweep(kind kinds.Kind, again bool) (version string, served bool) {
	m.bed.T.Helper()
	ctx := m.bed.T.Context()
	list := m.bed.List(kind)
	version = list.GetResourceVersion()
	served = version != ""
	var highest uint64
	for i := range list.Items {
		highest = max(highest, m.put(ctx, kind, &list.Items[i], word{again: again}))
	}
	stream, err := m.bed.JS.Stream(ctx, topology.Changes)
	if err != nil {
		m.bed.T.Fatal(err)
	}
	if err := m.publisher.Marker(ctx, &eventv1.SnapshotMarker{
		Cluster: "local", Group: kind.Group, Resource: kind.Resource, Epoch: m.origin.Epoch,
		ResourceVersion: version, Count: int64(len(list.Items)),
		Stream: topology.Incarnation(stream.CachedInfo()), LastSequence: highest, Served: served,
	}); err != nil {
		m.bed.T.Fatal(err)
	}
	return version, served
}

func (m *Mirror) follow(ctx context.Context, kind kinds.Kind, version string) {
	for ctx.Err() == nil {
		w, err := m.bed.Resource(kind).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			<-time.After(mirrorPause)
			continue
		}
		for e := range w.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type == watch.Error {
				break
			}
			version = u.GetResourceVersion()
			m.gate.Lock()
			m.put(ctx, kind, u, word{deleted: e.Type == watch.Deleted})
			m.gate.Unlock()
		}
		w.Stop()
	}
}

// word is how a state is published: as a deletion, or once more.
type word struct{ deleted, again bool }

// put publishes one state, however long the bus is away, and returns its place in the stream.
func (m *Mirror) put(ctx context.Context, kind kinds.Kind, u *unstructured.Unstructured, w word) uint64 {
	change, err := m.origin.Change(kind, u)
	if err != nil {
		m.bed.T.Error(err)
		return 0
	}
	change.Deleted, change.ObservedAt = w.deleted, time.Now()
	for ctx.Err() == nil {
		ack, err := m.publisher.Publish(ctx, change, 0, publish.Options{Replay: w.again})
		if err == nil {
			return ack.Sequence
		}
		<-time.After(mirrorPause)
	}
	return 0
}
