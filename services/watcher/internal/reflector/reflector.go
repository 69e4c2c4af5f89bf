// Package reflector keeps ENTAIL_CHANGES equal to the API server: the newest state of every object of some kinds, and a
// tombstone for each deleted one.
//
// Each kind has its own reflector. It first sweeps: it reads the messages on the stream (headers only), lists the kind
// and publishes the differences. After the last acknowledgement it writes the snapshot marker. Then it watches. Every
// event that may have broken the equality (a watch that expired, a stream that was wiped) starts a new sweep.
//
// Memory holds only a fingerprint of each object. The newest state is in memory only while it waits for publication,
// and one bound limits all waiting states of a lane.
package reflector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/barrier"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

const (
	// backlogBytes bounds the objects that wait for publication. Lists and watches block at the bound.
	backlogBytes = 64 << 20
	// minRetry and maxRetry bound the wait before a retry.
	minRetry = 50 * time.Millisecond
	maxRetry = 2 * time.Second
	// changeWorkers is the number of workers for objects that the stream already holds.
	changeWorkers = 4
	// publishTimeout bounds one attempt to publish.
	publishTimeout = 3 * time.Second
)

// ErrForeign means that the stream holds objects of another cluster under this cluster's name, and nothing of this
// cluster. A sweep would declare all of them deleted.
var ErrForeign = errors.New("the bus holds another cluster's objects under this name: " +
	"choose another --cluster name, or delete the stream " + topology.Changes)

// Source is the API server.
type Source interface {
	ClusterUID(ctx context.Context) (string, error)
	List(ctx context.Context, kind kinds.Kind, token string) (source.Page, error)
	// ListNamed lists the objects with a name.
	ListNamed(ctx context.Context, kind kinds.Kind, name string) (source.Page, error)
	Watch(ctx context.Context, kind kinds.Kind, version string) iter.Seq2[source.Event, error]
	// FindServedKind returns the served kind with a name, for use as a kind of targets.
	FindServedKind(ctx context.Context, of event.GroupResource) (kinds.Kind, error)
	// ContentHash returns the fingerprint of an object that was published.
	ContentHash(kind kinds.Kind, published event.Change) (string, error)
	// CurrentResourceVersion returns the current version of the kind.
	CurrentResourceVersion(ctx context.Context, kind kinds.Kind) (string, error)
}

// Config holds the settings of a reflector. All fields are required.
type Config struct {
	Source    Source
	Publisher *publish.Publisher
	Cluster   string
	// Term orders the terms of leaders. A later term has a higher number.
	Term uint64
	// LeaseTerm reads the term of the present holder of the Lease from the API server.
	LeaseTerm      func(context.Context) (uint64, error)
	Kinds          []kinds.Kind
	StreamReplicas int
	// Workers bounds the concurrent publications.
	Workers int
	// TombstoneTTL is how long the stream keeps a deletion.
	TombstoneTTL time.Duration
	// CheckInterval is the time between two checks of the stream. The API server's versions are checked after every
	// [versionEvery] of them.
	CheckInterval time.Duration
	// Resync is the time between two regular sweeps. A random part of up to a tenth is subtracted.
	Resync  time.Duration
	Log     *slog.Logger
	Metrics *Metrics
	Rewinds *RewoundKinds
	Halt    ServiceHalt
	// Event records an Event about an object.
	Event      func(context.Context, event.Change, condition.EventContent) error
	Health     *Health
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
}

// reflector is one run of [Run].
type reflector struct {
	cfg Config

	epoch     epochTracker
	audit     *streamAuditor
	forgeries forgeryCounter
	lane      *publishQueue
	kinds     []*kindReflector
	targets   *targetKinds
	barriers  *barrier.Sequencer
	// doubt is set while everything must be compared again before the next barrier.
	doubt    atomic.Pointer[fullRelistCause]
	warnings rate.Sometimes
	// unwritten is the logged reason why no barrier is written. It is empty while barriers are written.
	unwritten string
	// restoring is held while streams are checked and restored: one request at a time.
	restoring sync.Mutex
	// restored means that all streams had the right configuration once.
	restored bool
	// copies holds the streams for which too many copies were logged.
	copies map[string]bool
}

// publishQueue holds the queues for publication. Changes of objects that the stream already holds have their own queue,
// because they may remove something. They do not wait behind new objects, of which any user may create very many.
type publishQueue struct {
	fresh, changed workqueue.TypedRateLimitingInterface[publishTask]
	backlog        *semaphore.Weighted
}

func newPublishQueue() *publishQueue {
	queue := func() workqueue.TypedRateLimitingInterface[publishTask] {
		return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[publishTask](minRetry, maxRetry))
	}
	return &publishQueue{queue(), queue(), semaphore.NewWeighted(backlogBytes)}
}

func (l *publishQueue) shutDown() {
	l.fresh.ShutDown()
	l.changed.ShutDown()
}

// publishTask is one publication: of an object or, without a name, of the marker.
type publishTask struct {
	on   *kindReflector
	name types.NamespacedName
}

// Run keeps the stream equal to the API server until ctx ends, which is no error, or a fatal error occurs.
func Run(ctx context.Context, cfg Config) error {
	registered := newRegistrationTracker(cfg.Source)
	cfg.Source = registered
	r := &reflector{cfg: cfg, lane: newPublishQueue(), warnings: rate.Sometimes{First: 1, Interval: time.Second}, copies: map[string]bool{}}
	r.targets, r.audit = newTargetKinds(r, registered), newStreamAuditor(r)
	cfg.Publisher.SetOnAck(r.audit.recordAcknowledged)
	defer cfg.Publisher.SetOnAck(nil)
	for _, kind := range cfg.Kinds {
		r.kinds = append(r.kinds, newKindReflector(r, kind, r.lane))
	}
	defer r.cfg.Metrics.forgetLeaderValues()
	defer r.cfg.Rewinds.removeAllRewinds()
	defer r.cfg.Health.beginTerm(r.kinds)()
	group, ctx := errgroup.WithContext(ctx)
	context.AfterFunc(ctx, r.lane.shutDown)
	context.AfterFunc(ctx, r.targets.lane.shutDown)
	group.Go(func() error { r.probeAPIServer(ctx); return nil })
	group.Go(func() error { return r.identifyAndRun(ctx, group) })
	return group.Wait()
}

// identifyAndRun starts all other work once the cluster and the stream are identified.
func (r *reflector) identifyAndRun(ctx context.Context, group *errgroup.Group) error {
	for attempt := 1; ; attempt++ {
		began := time.Now()
		err := r.identifyClusterAndStream(ctx)
		r.cfg.Health.recordStreamCheck(began, err)
		if err == nil {
			break
		}
		if isFatal(err) || fault.IsTerminal(err) {
			return err
		}
		r.cfg.Log.WarnContext(ctx, "cluster or stream cannot be identified; trying again", "attempt", attempt, "error", err)
		if !retryBackoff().Wait(ctx, attempt) {
			return nil
		}
	}
	for on, workers := range map[*publishQueue]int{r.lane: r.cfg.Workers, r.targets.lane: targetWorkers} {
		for range workers {
			group.Go(func() error { r.runWorker(ctx, on.fresh); return nil })
		}
		for range changeWorkers {
			group.Go(func() error { r.runWorker(ctx, on.changed); return nil })
		}
	}
	for _, k := range r.kinds {
		group.Go(func() error { return k.followKind(ctx) })
	}
	group.Go(func() error { r.targets.followRegisteredKinds(ctx); return nil })
	group.Go(func() error { r.detectRewinds(ctx); return nil })
	group.Go(func() error { return r.writeBarriers(ctx) })
	group.Go(func() error { r.audit.runAudit(ctx); return nil })
	r.checkStreams(ctx)
	return nil
}

// allKindReflectors returns the reflectors of all kinds, including targets.
func (r *reflector) allKindReflectors() []*kindReflector {
	return append(slices.Clip(r.kinds), r.targets.targetKindReflectors()...)
}

// enqueueMarker enqueues the marker of a kind.
func (r *reflector) enqueueMarker(kind kinds.Kind) {
	for _, k := range r.kinds {
		if k.kind == kind {
			k.lane.fresh.Add(publishTask{on: k})
		}
	}
}

// identifyClusterAndStream verifies that the stream belongs to the cluster, and sets the epoch.
func (r *reflector) identifyClusterAndStream(ctx context.Context) error {
	cluster, err := r.cfg.Source.ClusterUID(ctx)
	if err != nil {
		return err
	}
	r.epoch.advanceTo(cluster)
	if err := r.repairStreams(ctx); err != nil {
		return err
	}
	if _, err := r.ensureStreamID(ctx); err != nil {
		return err
	}
	if err := r.audit.startAtStreamEnd(ctx); err != nil {
		return err
	}
	newest, err := r.beginBarrierRun(ctx)
	if err != nil {
		return err
	}
	r.cfg.Halt.AdoptFromBarrier(newest)
	epochs := []string{newest.GetEpoch()}
	for _, kind := range r.cfg.Kinds {
		head, err := r.cfg.Publisher.ReadOldestEntry(ctx, r.cfg.Cluster, kind.GroupResource)
		if err != nil && !isMissingOrMalformed(err) {
			return err
		}
		marker, err := r.cfg.Publisher.LastMarker(ctx, r.cfg.Cluster, kind.GroupResource)
		if err != nil && !isMissingOrMalformed(err) {
			return err
		}
		r.epoch.advanceTo(marker.GetEpoch())
		epochs = append(epochs, head.Epoch, marker.GetEpoch())
	}
	return r.checkStreamOwner(epochs)
}

// checkStreamOwner returns [ErrForeign] if some of the epochs on the stream are of another cluster, and none is of this
// one. If one is of this cluster, others are forged.
func (r *reflector) checkStreamOwner(epochs []string) error {
	epochs = slices.DeleteFunc(epochs, func(epoch string) bool { return epoch == "" })
	if len(epochs) > 0 && !slices.ContainsFunc(epochs, func(epoch string) bool { return !r.isForeignEpoch(epoch) }) {
		return fmt.Errorf("the stream is of cluster %s, this is %s (%q): %w", epochs[0], r.epoch.currentEpoch(), r.cfg.Cluster, ErrForeign)
	}
	return nil
}

// isForeignEpoch reports whether an epoch is of another cluster. A message of an earlier release has no epoch.
func (r *reflector) isForeignEpoch(epoch string) bool {
	_, ok := event.CompareEpochs(epoch, r.epoch.currentEpoch())
	return epoch != "" && !ok
}

// isMissingOrMalformed reports whether no message exists, or only a malformed one.
func isMissingOrMalformed(err error) bool {
	return errors.Is(err, publish.ErrNoMessage) || errors.Is(err, publish.ErrMalformed)
}

// adoptLaterEpoch starts a new sweep of everything if a message is of a later epoch of this cluster.
func (r *reflector) adoptLaterEpoch(head publish.Entry) {
	if order, ok := event.CompareEpochs(head.Epoch, r.epoch.currentEpoch()); ok && order > 0 {
		r.beginEpoch(head.Epoch)
	}
}

// runWorker carries out the tasks of a queue until it is shut down. It retries for ever.
func (r *reflector) runWorker(ctx context.Context, queue workqueue.TypedRateLimitingInterface[publishTask]) {
	for {
		t, end := queue.Get()
		if end {
			return
		}
		began := time.Now()
		err := t.on.runPublishTask(ctx, t.name)
		r.cfg.Health.recordPublication(began, err)
		if err == nil {
			queue.Forget(t)
		} else if ctx.Err() == nil {
			r.cfg.Metrics.retries.Inc()
			r.warnings.Do(func() {
				r.cfg.Log.WarnContext(ctx, "publication failed; trying again", "kind", t.on.kind.GroupResource.String(),
					"namespace", t.name.Namespace, "name", t.name.Name, "attempt", queue.NumRequeues(t)+1, "error", err)
			})
			queue.AddRateLimited(t)
		}
		queue.Done(t)
	}
}

// retryBackoff returns the wait between retries.
func retryBackoff() backoff.Backoff { return backoff.Backoff{Min: minRetry, Max: maxRetry} }

// isFatal reports whether a retry cannot help.
func isFatal(err error) bool {
	return errors.Is(err, ErrForeign) || errors.Is(err, source.ErrOtherCluster)
}
