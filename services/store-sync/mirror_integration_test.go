//go:build integration

package storesync_test

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

// mirror publishes what is in Kubernetes and what becomes of it, as the watcher does.
func (b *bed) mirror() {
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
	var following sync.WaitGroup
	b.t.Cleanup(func() { cancel(); following.Wait() })
	for _, kind := range topology.Kinds() {
		m := mirrored{bed: b, kind: kind, origin: kube.Origin{Cluster: "local", Epoch: epoch}, publisher: publish.New(b.js)}
		version := m.sweep()
		following.Go(func() { m.follow(ctx, version) })
	}
}

type mirrored struct {
	*bed
	kind      topology.Kind
	origin    kube.Origin
	publisher *publish.Publisher
}

// sweep publishes everything there is, and the marker that says so.
func (m mirrored) sweep() string {
	m.t.Helper()
	list := m.list(m.kind)
	for i := range list.Items {
		m.put(m.t.Context(), &list.Items[i], false)
	}
	stream, err := m.js.Stream(m.t.Context(), topology.Changes)
	if err != nil {
		m.t.Fatal(err)
	}
	info := stream.CachedInfo()
	if err := m.publisher.Marker(m.t.Context(), &eventv1.SnapshotMarker{
		Cluster: "local", Group: m.kind.Group, Resource: m.kind.Resource, Epoch: m.origin.Epoch,
		ResourceVersion: list.GetResourceVersion(), Count: int64(len(list.Items)),
		Stream: topology.Incarnation(info), LastSequence: info.State.LastSeq, Served: true,
	}); err != nil {
		m.t.Fatal(err)
	}
	return list.GetResourceVersion()
}

// follow publishes what happens after version.
func (m mirrored) follow(ctx context.Context, version string) {
	for ctx.Err() == nil {
		w, err := m.resource(m.kind).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
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
			m.put(ctx, u, e.Type == watch.Deleted)
		}
		w.Stop()
	}
}

func (m mirrored) put(ctx context.Context, u *unstructured.Unstructured, deleted bool) {
	change, err := m.origin.Change(m.kind, u)
	change.Deleted, change.ObservedAt = deleted, time.Now()
	if err == nil {
		_, err = m.publisher.Publish(ctx, change, 0, publish.Options{})
	}
	if err != nil && ctx.Err() == nil {
		m.t.Errorf("publishing %s: %v", change.Key, err)
	}
}
