// Package mirror keeps ENTAIL_CHANGES equal to the API server: the newest state of
// every object of some kinds, and a deletion for what is gone.
//
// Each kind has a feed. A feed sweeps: it reads what the stream holds (headers only),
// lists the kind, publishes the differences, and when the last of them is
// acknowledged writes the snapshot marker. Then it watches. Whatever may have broken
// the equality (a watch that expired, a stream that was wiped) starts the sweep again.
//
// Of an object only a fingerprint stays in memory; its state does while it waits for
// publication, newest state only, and all that wait share one bound.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

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
	// publishTimeout bounds one attempt to publish.
	publishTimeout = 3 * time.Second
	// settling is more than a server takes to delete a stream.
	settling = time.Second
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
}

// Config of a mirror. All fields are required.
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
	// CheckInterval is how often the stream is looked at from outside.
	CheckInterval time.Duration
	// Resync is how often, within a tenth, everything is compared without a reason.
	Resync     time.Duration
	Log        *slog.Logger
	Metrics    *Metrics
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
}

// mirror is one run.
type mirror struct {
	Config

	epoch   string
	queue   workqueue.TypedRateLimitingInterface[task]
	backlog *semaphore.Weighted
	feeds   []*feed
	grumble rate.Sometimes
}

// task is what a worker does: publish one object, or, without a name, the marker.
type task struct {
	feed *feed
	name types.NamespacedName
}

// Run keeps the stream equal to the API server until ctx ends, which is no error, or
// going on would do harm.
func Run(ctx context.Context, cfg Config) error {
	m := &mirror{
		Config: cfg, backlog: semaphore.NewWeighted(backlogBytes), grumble: rate.Sometimes{First: 1, Interval: time.Second},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[task](minRetry, maxRetry)),
	}
	for _, kind := range cfg.Kinds {
		m.feeds = append(m.feeds, newFeed(m, kind))
	}
	defer m.Metrics.forget()
	group, ctx := errgroup.WithContext(ctx)
	context.AfterFunc(ctx, m.queue.ShutDown)
	group.Go(func() error { return m.run(ctx, group) })
	return group.Wait()
}

// run starts everything else once it is clear that nothing of it can do harm.
func (m *mirror) run(ctx context.Context, group *errgroup.Group) error {
	for attempt := 0; ; attempt++ {
		err := m.identify(ctx)
		if err == nil {
			break
		}
		if fatal(err) {
			return err
		}
		m.Log.WarnContext(ctx, "cluster or stream cannot be identified; trying again", "attempt", attempt+1, "error", err)
		if !pause(ctx, attempt) {
			return nil
		}
	}
	for range m.Workers {
		group.Go(func() error { m.work(ctx); return nil })
	}
	for _, f := range m.feeds {
		group.Go(func() error { return f.run(ctx) })
	}
	m.check(ctx)
	return nil
}

// identify makes sure that the stream belongs to the cluster.
func (m *mirror) identify(ctx context.Context) error {
	epoch, err := m.Source.Epoch(ctx)
	if err != nil {
		return err
	}
	m.epoch = epoch
	if _, err := m.incarnation(ctx); err != nil {
		return err
	}
	for _, kind := range m.Kinds {
		head, err := m.Publisher.First(ctx, m.Cluster, kind.GroupResource)
		if err == nil {
			err = m.own(head)
		}
		if err != nil && !errors.Is(err, publish.ErrNone) && !errors.Is(err, publish.ErrMalformed) {
			return err
		}
	}
	return nil
}

// own refuses a message of another cluster; one that is nobody's is not refused.
func (m *mirror) own(head publish.Head) error {
	if head.Epoch != "" && head.Epoch != m.epoch {
		return fmt.Errorf("%s is of cluster %s, this is %s (%q): %w", head.Key, head.Epoch, m.epoch, m.Cluster, ErrForeign)
	}
	return nil
}

// incarnation tells the life of the stream, which is made if there has been none for
// a while: a server that is asked to make a stream while it deletes the one of the same
// name mixes up their files, and acknowledges nothing any more.
func (m *mirror) incarnation(ctx context.Context) (string, error) {
	incarnation, err := m.Publisher.Incarnation(ctx)
	if errors.Is(err, publish.ErrNone) && sleep(ctx, settling) {
		incarnation, err = m.Publisher.Incarnation(ctx)
	}
	if !errors.Is(err, publish.ErrNone) {
		return incarnation, err
	}
	if err := m.Publisher.Ensure(ctx, m.StreamReplicas); err != nil {
		return "", err
	}
	return m.Publisher.Incarnation(ctx)
}

// work publishes what is in the queue until the queue is shut down. Nothing is ever given up.
func (m *mirror) work(ctx context.Context) {
	for {
		t, end := m.queue.Get()
		if end {
			return
		}
		err := t.feed.do(ctx, t.name)
		if err == nil {
			m.queue.Forget(t)
		} else if ctx.Err() == nil {
			m.Metrics.retries.Inc()
			m.grumble.Do(func() {
				m.Log.WarnContext(ctx, "publication failed; trying again", "kind", t.feed.kind.GroupResource.String(),
					"namespace", t.name.Namespace, "name", t.name.Name, "attempt", m.queue.NumRequeues(t)+1, "error", err)
			})
			m.queue.AddRateLimited(t)
		}
		m.queue.Done(t)
	}
}

// fatal errors are not cured by trying again.
func fatal(err error) bool {
	return errors.Is(err, ErrForeign) || errors.Is(err, source.ErrOtherCluster)
}
