// Package reflector keeps ENTAIL_CHANGES equal to the API server: the newest state of
// every object of some kinds, and a deletion for what is gone.
//
// Each kind has a reflector of its own. It sweeps: it reads what the stream holds (headers only),
// lists the kind, publishes the differences, and when the last of them is
// acknowledged writes the snapshot marker. Then it watches. Whatever may have broken
// the equality (a watch that expired, a stream that was wiped) starts the sweep again.
//
// Of an object only a fingerprint stays in memory; its state does while it waits for
// publication, newest state only, and all that wait share one bound.
package reflector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

const (
	// backlogBytes bounds the objects that wait for publication; a list or watch then waits too.
	backlogBytes = 64 << 20
	// minRetry and maxRetry bound the wait before something is tried again.
	minRetry = 50 * time.Millisecond
	maxRetry = 2 * time.Second
	// changeWorkers publish what the stream tells otherwise.
	changeWorkers = 4
	// publishTimeout bounds one attempt to publish.
	publishTimeout = 3 * time.Second
)

// ErrForeign is returned when the stream holds objects of another cluster under this
// cluster's name: a sweep would declare all of them deleted.
var ErrForeign = errors.New("the bus holds another cluster's objects under this name: " +
	"choose another --cluster name, or delete the stream " + topology.Changes)

// Source is the API server.
type Source interface {
	Epoch(ctx context.Context) (string, error)
	List(ctx context.Context, kind kinds.Kind, token string) (source.Page, error)
	Watch(ctx context.Context, kind kinds.Kind, version string) iter.Seq2[source.Event, error]
	// Find finds the kind that is served under a name, as one of targets.
	Find(ctx context.Context, of event.GroupResource) (kinds.Kind, error)
	// Version is where the kind is now.
	Version(ctx context.Context, kind kinds.Kind) (string, error)
}

// Config of a reflector. All fields are required.
type Config struct {
	Source         Source
	Publisher      *publish.Publisher
	Cluster        string
	Kinds          []kinds.Kind
	StreamReplicas int
	// Workers publish at a time.
	Workers int
	// TombstoneTTL is how long the stream keeps a deletion.
	TombstoneTTL time.Duration
	// CheckInterval is how often the stream is looked at from outside. The API server is asked
	// where it is every [versionEvery] of them.
	CheckInterval time.Duration
	// Resync is how often, within a tenth, everything is compared without a reason.
	Resync     time.Duration
	Log        *slog.Logger
	Metrics    *Metrics
	Rewinds    *Rewinds
	Health     *Health
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
}

// reflector is one run.
type reflector struct {
	cfg Config

	epoch    epoch
	lane     *lane
	kinds    []*kindReflector
	targets  *targets
	warnings rate.Sometimes
	// restoring is held while streams are looked at and restored: one request at a time.
	restoring sync.Mutex
	// restored means that all streams were as they must be, once.
	restored bool
	// copies are the streams of which it was told that they have more copies than were asked for.
	copies map[string]bool
}

// lane is where what is to be published waits for those who publish it: what the stream tells otherwise, and may take something
// away, not behind what is new. Of that anybody may make very much.
type lane struct {
	fresh, changed workqueue.TypedRateLimitingInterface[task]
	backlog        *semaphore.Weighted
}

func newLane() *lane {
	queue := func() workqueue.TypedRateLimitingInterface[task] {
		return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[task](minRetry, maxRetry))
	}
	return &lane{queue(), queue(), semaphore.NewWeighted(backlogBytes)}
}

func (l *lane) shutDown() {
	l.fresh.ShutDown()
	l.changed.ShutDown()
}

// task is what a worker does: publish one object, or, without a name, the marker.
type task struct {
	on   *kindReflector
	name types.NamespacedName
}

// Run keeps the stream equal to the API server until ctx ends, which is no error, or
// going on would do harm.
func Run(ctx context.Context, cfg Config) error {
	registered := newRegistrations(cfg.Source)
	cfg.Source = registered
	r := &reflector{cfg: cfg, lane: newLane(), warnings: rate.Sometimes{First: 1, Interval: time.Second}, copies: map[string]bool{}}
	r.targets = newTargets(r, registered)
	for _, kind := range cfg.Kinds {
		r.kinds = append(r.kinds, newKindReflector(r, kind, r.lane))
	}
	defer r.cfg.Metrics.forget()
	defer r.cfg.Rewinds.forget()
	defer r.cfg.Health.begin(r.kinds)()
	group, ctx := errgroup.WithContext(ctx)
	context.AfterFunc(ctx, r.lane.shutDown)
	context.AfterFunc(ctx, r.targets.lane.shutDown)
	group.Go(func() error { r.read(ctx); return nil })
	group.Go(func() error { return r.run(ctx, group) })
	return group.Wait()
}

// run starts everything else once it is clear that nothing of it can do harm.
func (r *reflector) run(ctx context.Context, group *errgroup.Group) error {
	for attempt := 1; ; attempt++ {
		began := time.Now()
		err := r.identify(ctx)
		r.cfg.Health.streamChecked(began, err)
		if err == nil {
			break
		}
		if fatal(err) || fault.IsTerminal(err) {
			return err
		}
		r.cfg.Log.WarnContext(ctx, "cluster or stream cannot be identified; trying again", "attempt", attempt, "error", err)
		if !retries().Wait(ctx, attempt) {
			return nil
		}
	}
	for on, workers := range map[*lane]int{r.lane: r.cfg.Workers, r.targets.lane: targetWorkers} {
		for range workers {
			group.Go(func() error { r.work(ctx, on.fresh); return nil })
		}
		for range changeWorkers {
			group.Go(func() error { r.work(ctx, on.changed); return nil })
		}
	}
	for _, k := range r.kinds {
		group.Go(func() error { return k.run(ctx) })
	}
	group.Go(func() error { r.targets.run(ctx); return nil })
	group.Go(func() error { r.checkVersions(ctx); return nil })
	group.Go(func() error { r.beat(ctx); return nil })
	r.check(ctx)
	return nil
}

// all are the reflectors of all kinds, targets included.
func (r *reflector) all() []*kindReflector {
	return append(slices.Clip(r.kinds), r.targets.reflectors()...)
}

// mark has the marker of a kind written, if it is time.
func (r *reflector) mark(kind kinds.Kind) {
	for _, k := range r.kinds {
		if k.kind == kind {
			k.lane.fresh.Add(task{on: k})
		}
	}
}

// identify makes sure that the stream belongs to the cluster, and learns the epoch.
func (r *reflector) identify(ctx context.Context) error {
	cluster, err := r.cfg.Source.Epoch(ctx)
	if err != nil {
		return err
	}
	r.epoch.advance(cluster)
	if err := r.restore(ctx); err != nil {
		return err
	}
	if _, err := r.incarnation(ctx); err != nil {
		return err
	}
	for _, kind := range r.cfg.Kinds {
		head, err := r.cfg.Publisher.First(ctx, r.cfg.Cluster, kind.GroupResource)
		if err == nil {
			err = r.checkEpoch(head)
		}
		if err == nil || nothing(err) {
			err = r.resumeEpoch(ctx, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resumeEpoch goes on in the epoch of a kind's last marker.
func (r *reflector) resumeEpoch(ctx context.Context, kind kinds.Kind) error {
	marker, err := r.cfg.Publisher.LastMarker(ctx, r.cfg.Cluster, kind.GroupResource)
	if err == nil {
		r.epoch.advance(marker.GetEpoch())
	}
	if nothing(err) {
		return nil
	}
	return err
}

// nothing means that there is no such message, or none that says anything.
func nothing(err error) bool {
	return errors.Is(err, publish.ErrNone) || errors.Is(err, publish.ErrMalformed)
}

// checkEpoch refuses a message of another cluster; one that is nobody's is not refused. Of a
// later epoch of this one, everything is swept again.
func (r *reflector) checkEpoch(head publish.Head) error {
	if head.Epoch == "" {
		return nil
	}
	now := r.epoch.current()
	order, ok := event.CompareEpochs(head.Epoch, now)
	if !ok {
		return fmt.Errorf("%s is of cluster %s, this is %s (%q): %w", head.Key, head.Epoch, now, r.cfg.Cluster, ErrForeign)
	}
	if order > 0 {
		r.begin(head.Epoch)
	}
	return nil
}

// work publishes what is in the queue until the queue is shut down. Nothing is ever given up.
func (r *reflector) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[task]) {
	for {
		t, end := queue.Get()
		if end {
			return
		}
		began := time.Now()
		err := t.on.do(ctx, t.name)
		r.cfg.Health.published(began, err)
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

// retries is how long to wait before something is tried again.
func retries() backoff.Backoff { return backoff.Backoff{Min: minRetry, Max: maxRetry} }

// fatal errors are not cured by trying again.
func fatal(err error) bool {
	return errors.Is(err, ErrForeign) || errors.Is(err, source.ErrOtherCluster)
}
