//go:build integration

package tuplesync_test

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
)

// mirror publishes what is in Kubernetes and what becomes of it, as the watcher does. It
// can be held still, and made to publish everything again.
type mirror struct {
	*bed
	origin    kube.Origin
	publisher *publish.Publisher
	// gate is locked while nothing is to be published.
	gate sync.Mutex
}

func (b *bed) mirror() *mirror {
	b.t.Helper()
	api, err := kube.New(b.kube.Admin(), "local", "test")
	if err != nil {
		b.t.Fatal(err)
	}
	epoch, err := api.Epoch(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	m := &mirror{bed: b, origin: kube.Origin{Cluster: "local", Epoch: epoch}, publisher: publish.New(b.js)}
	var following sync.WaitGroup
	b.t.Cleanup(func() { cancel(); following.Wait() })
	for _, kind := range topology.Kinds() {
		version := m.sweep(kind, false)
		following.Go(func() { m.follow(ctx, kind, version) })
	}
	return m
}

// replay publishes every object again, to be processed anew.
func (m *mirror) replay() {
	m.t.Helper()
	for _, kind := range topology.Kinds() {
		m.sweep(kind, true)
	}
}

// sweep publishes all objects of a kind, and the marker that says so.
func (m *mirror) sweep(kind topology.Kind, again bool) string {
	m.t.Helper()
	list := m.list(kind)
	for i := range list.Items {
		m.put(m.t.Context(), kind, &list.Items[i], word{again: again})
	}
	stream, err := m.js.Stream(m.t.Context(), topology.Changes)
	if err != nil {
		m.t.Fatal(err)
	}
	info := stream.CachedInfo()
	if err := m.publisher.Marker(m.t.Context(), &eventv1.SnapshotMarker{
		Cluster: "local", Group: kind.Group, Resource: kind.Resource, Epoch: m.origin.Epoch,
		ResourceVersion: list.GetResourceVersion(), Count: int64(len(list.Items)),
		Stream: topology.Incarnation(info), LastSequence: info.State.LastSeq, Served: true,
	}); err != nil {
		m.t.Fatal(err)
	}
	return list.GetResourceVersion()
}

func (m *mirror) follow(ctx context.Context, kind topology.Kind, version string) {
	for ctx.Err() == nil {
		w, err := m.resource(kind).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			<-time.After(50 * time.Millisecond)
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

// put publishes one state, however long the bus is away.
func (m *mirror) put(ctx context.Context, kind topology.Kind, u *unstructured.Unstructured, w word) {
	change, err := m.origin.Change(kind, u)
	if err != nil {
		m.t.Error(err)
		return
	}
	change.Deleted, change.ObservedAt = w.deleted, time.Now()
	for ctx.Err() == nil {
		if _, err = m.publisher.Publish(ctx, change, 0, publish.Options{Replay: w.again}); err == nil {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}
