package testenv

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
)

// local is the name of the cluster whose objects are published.
const local = "local"

// retryPause is the wait before another request to NATS or the API server.
const retryPause = 50 * time.Millisecond

// Reflector publishes the objects in Kubernetes and their changes as the watcher does. It is for tests of services,
// which cannot import the watcher. A test can pause it, or make it publish everything again.
type Reflector struct {
	env       *Env
	kinds     []kinds.Kind
	origin    kube.ClusterOrigin
	publisher *publish.Publisher
	ctx       context.Context //nolint:containedctx // It is how long it runs.
	following sync.WaitGroup
	// gate is locked while the reflector is paused. waiting counts the changes that wait for the gate.
	gate    sync.Mutex
	waiting atomic.Int64
	// repeated holds the messages of the last RepublishAll, by subject.
	repeated map[string]*nats.Msg
}

// StartReflector starts a reflector for all kinds that services read and for the given kinds, until the test ends.
func (b *Env) StartReflector(extra ...kinds.Kind) *Reflector {
	b.T.Helper()
	api, err := kube.New(b.Kube.AdminConfig(), local, "test")
	if err != nil {
		b.T.Fatal(err)
	}
	epoch, err := api.ClusterUID(b.T.Context())
	if err != nil {
		b.T.Fatal(err)
	}
	r := &Reflector{
		env: b, kinds: append(kinds.ConsumedKinds(), extra...), origin: kube.ClusterOrigin{Cluster: local, Epoch: epoch},
		publisher: publish.New(b.JS),
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.T.Context()))
	r.ctx = ctx
	b.T.Cleanup(func() { cancel(); r.following.Wait() })
	r.following.Go(func() { r.writeBarriers(ctx) })
	for _, kind := range r.kinds {
		r.startKind(kind)
	}
	return r
}

// PublishTargetKind publishes the objects of a kind as targets of bindings. If problem is set, it only publishes a
// marker that the kind is not observed.
func (r *Reflector) PublishTargetKind(kind kinds.Kind, problem string) {
	r.env.T.Helper()
	if problem == "" {
		r.startKind(kind)
		return
	}
	r.publishMarker(kind, &eventv1.SnapshotMarker{Problem: problem})
}

func (r *Reflector) startKind(kind kinds.Kind) {
	r.env.T.Helper()
	if list := r.publishKind(kind, false); list.GetResourceVersion() != "" {
		r.following.Go(func() { r.followKind(r.ctx, kind, list) })
	}
}

// publishMarker publishes a snapshot marker of a kind.
func (r *Reflector) publishMarker(kind kinds.Kind, m *eventv1.SnapshotMarker) {
	r.env.T.Helper()
	stream, err := r.env.JS.Stream(r.env.T.Context(), topology.Changes)
	if err != nil {
		r.env.T.Fatal(err)
	}
	m.Cluster, m.Group, m.Resource, m.Epoch, m.Stream = local, kind.Group, kind.Resource, r.origin.Epoch, topology.StreamID(stream.CachedInfo())
	if m.Target = kind.Target; m.GetTarget() {
		m.Kind, m.Version, m.Namespaced = kind.Kind, kind.Version, !kind.ClusterScoped
	}
	if err := r.publisher.PublishMarker(r.env.T.Context(), m); err != nil {
		r.env.T.Fatal(err)
	}
}

// writeBarriers writes barriers, except while the reflector is paused or a change waits to be published.
func (r *Reflector) writeBarriers(ctx context.Context) {
	barriers := NewBarrierWriter(r.publisher, r.origin.Cluster)
	for ctx.Err() == nil {
		r.gate.Lock()
		if r.waiting.Load() == 0 {
			_ = barriers.Write(ctx, 0) // An error is ignored: another barrier follows soon.
		}
		r.gate.Unlock()
		backoff.Sleep(ctx, barrierInterval)
	}
}

// Replay publishes every object again, marked for another reconciliation.
func (r *Reflector) Replay() {
	r.env.T.Helper()
	for _, kind := range r.kinds {
		r.publishKind(kind, true)
	}
}

// Pause pauses the reflector until release is called.
func (r *Reflector) Pause() (release func()) {
	r.gate.Lock()
	return r.gate.Unlock
}

// publishKind publishes all objects of a kind and then the snapshot marker. A kind that is published only where it is
// referenced has no marker. The returned list has no version for a kind that is not served.
func (r *Reflector) publishKind(kind kinds.Kind, again bool) (list *unstructured.UnstructuredList) {
	r.env.T.Helper()
	ctx := r.env.T.Context()
	list = r.env.List(kind)
	version := list.GetResourceVersion()
	var highest uint64
	for i := range list.Items {
		highest = max(highest, r.publishState(ctx, kind, &list.Items[i], publishMode{repeated: again}))
	}
	if !kind.ReferencedOnly {
		r.publishMarker(kind, &eventv1.SnapshotMarker{ResourceVersion: version, Count: int64(len(list.Items)), LastSequence: highest, Served: version != ""})
	}
	return list
}

// watchedKind is a kind whose changes are published.
type watchedKind struct {
	*Reflector

	kind kinds.Kind
	api  dynamic.ResourceInterface
	// existing holds the objects that were published and not deleted. version is where the next watch begins.
	existing map[types.UID]*unstructured.Unstructured
	version  string
}

// followKind publishes the changes of a kind. The API server lets a watch expire when the definition of the kind
// changes. The kind is then listed again, and objects that the list lacks were deleted.
func (r *Reflector) followKind(ctx context.Context, kind kinds.Kind, list *unstructured.UnstructuredList) {
	f := watchedKind{r, kind, r.env.ResourceClient(kind).Namespace(kind.Namespace), map[types.UID]*unstructured.Unstructured{}, list.GetResourceVersion()}
	for i := range list.Items {
		f.existing[list.Items[i].GetUID()] = &list.Items[i]
	}
	for ctx.Err() == nil {
		err := f.watchChanges(ctx)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			f.resumeFromList(ctx)
		}
		if ctx.Err() == nil && err != nil {
			<-time.After(retryPause)
		}
	}
}

// watchChanges publishes changes until the watch ends. The error is nil if the API server has closed it.
func (f *watchedKind) watchChanges(ctx context.Context) error {
	w, err := f.api.Watch(ctx, metav1.ListOptions{ResourceVersion: f.version, AllowWatchBookmarks: true})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		if f.version = u.GetResourceVersion(); e.Type != watch.Bookmark {
			f.publishChange(ctx, u, e.Type == watch.Deleted)
		}
	}
	return nil
}

// resumeFromList publishes all objects, and the deletions since the last watch.
func (f *watchedKind) resumeFromList(ctx context.Context) {
	list, err := f.api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return // The next watch expires, too.
	}
	gone := maps.Clone(f.existing)
	for i := range list.Items {
		delete(gone, list.Items[i].GetUID())
		f.publishChange(ctx, &list.Items[i], false)
	}
	f.version = list.GetResourceVersion()
	for _, u := range gone {
		u.SetResourceVersion(f.version)
		f.publishChange(ctx, u, true)
	}
}

// publishChange publishes one state, unless the reflector is paused; then it waits.
func (f *watchedKind) publishChange(ctx context.Context, u *unstructured.Unstructured, deleted bool) {
	f.waiting.Add(1)
	f.gate.Lock()
	defer f.gate.Unlock()
	defer f.waiting.Add(-1)
	f.publishState(ctx, f.kind, u, publishMode{deleted: deleted})
	if f.existing[u.GetUID()] = u; deleted {
		delete(f.existing, u.GetUID())
	}
}

// publishMode marks a published state as a deletion, or as a repetition.
type publishMode struct{ deleted, repeated bool }

// publishState publishes one state and returns its sequence in the stream. It retries while NATS is unavailable.
func (r *Reflector) publishState(ctx context.Context, kind kinds.Kind, u *unstructured.Unstructured, how publishMode) uint64 {
	var o kube.Object
	raw, err := u.MarshalJSON()
	if err == nil {
		o, err = r.origin.DecodeObject(kind, raw)
	}
	if err != nil {
		r.env.T.Error(err)
		return 0
	}
	o.Deleted, o.ObservedAt = how.deleted, time.Now()
	for ctx.Err() == nil {
		ack, err := r.publisher.PublishChange(ctx, o.Change, 0, publish.PublicationOptions{Replay: how.repeated})
		if err == nil {
			return ack.Sequence
		}
		<-time.After(retryPause)
	}
	return 0
}
