// Package controller runs the controller of a service. It has a durable pull consumer, a queue of keys with one worker per
// key, and one function that settles messages. A message only means "reconcile this object again".
//
// A message is acknowledged when every key that it touches has been reconciled, and so its effect is durable in the
// backend. After a crash the message comes again, or the next start reconciles everything. Only the leader
// writes: see [leader.Elector].
package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/internal/topology"
)

// A Reconciler brings a backend to the state that the view declares, one key at a time.
type Reconciler[K comparable] interface {
	// AffectedKeys lists the keys that an object touches in its present state, deleted or not. It only reads. The engine also
	// remembers the earlier keys of an object, so that both ends of a moved reference are reconciled.
	AffectedKeys(object event.Key) []K
	// Reconcile brings the backend to what the view declares for p.Key. The engine calls it once at a time per key, and
	// only while the view is complete. It must be idempotent, and must write nothing if nothing changed. It classifies
	// its errors (package fault). It reports a user's mistake in a status, not as an error.
	Reconcile(ctx context.Context, p *Request[K]) error
}

// A Prioritizer is a [Reconciler] that runs some keys before others. Priority must be quick. The default is 0. Among
// equal keys the one that has waited longest is first.
type Prioritizer[K comparable] interface {
	Priority(key K) int
}

// DriftDetector is a [Reconciler] that reads its whole backend at once. The engine calls DriftedKeys once per resync. It
// lists the keys that differ from the backend, and only these are reconciled, with Pass.Resync.
type DriftDetector[K comparable] interface {
	DriftedKeys(ctx context.Context) ([]K, error)
}

// Config configures an engine. The fields up to View are required.
type Config struct {
	JS      jetstream.JetStream
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Service topology.Service
	View    *informer.Informer
	// Takeover bounds how soon another replica takes over. Default [topology.DefaultTakeoverBounds].
	Takeover topology.TakeoverBounds
	// Elector elects the leader of the service. Every write to a backend must check it: see [leader.Elector.LeaseRemaining].
	// The default is an Elector that no client checks.
	Elector *leader.Elector

	// Binding receives whether the engine is bound. Optional.
	Binding *leader.ConsumerBinding
	// Tracer traces the passes. The default records nothing.
	Tracer trace.TracerProvider
	// Workers bounds the keys that are reconciled in parallel. Default 8.
	Workers int
	// MaxAttempts bounds failures that no dependency caused. After it a message becomes a dead letter. Default 10.
	MaxAttempts int
	// Resync is the interval, varied by 10 %, in which everything is compared with the backend. Default 10 min.
	Resync time.Duration
	// Deadline bounds one reconciliation. Default 2 min.
	Deadline time.Duration
	// Grace bounds the drain at shutdown. Default 10 s.
	Grace time.Duration
	// MinDelay and MaxDelay bound the wait before a retry. Default 200 ms and 30 s.
	MinDelay, MaxDelay time.Duration
}

func (c Config) withDefaults() Config {
	defaults := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	if c.Binding == nil {
		c.Binding = &leader.ConsumerBinding{}
	}
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider()
	}
	if c.Workers <= 0 {
		c.Workers = 8
	}
	if c.Takeover == (topology.TakeoverBounds{}) {
		c.Takeover = topology.DefaultTakeoverBounds()
	}
	if c.Elector == nil {
		c.Elector = leader.NewElector(c.JS, c.Service.Name, c.Takeover, c.Log)
	}
	if c.MaxAttempts <= 0 {
		c.MaxAttempts = 10
	}
	defaults(&c.Resync, 10*time.Minute)
	defaults(&c.Deadline, 2*time.Minute)
	defaults(&c.Grace, 10*time.Second)
	defaults(&c.MinDelay, 200*time.Millisecond)
	defaults(&c.MaxDelay, 30*time.Second)
	return c
}

// Run consumes changes until ctx ends, and then drains: it finishes work in progress within Config.Grace, and returns
// all other messages to the server. It waits for the view, the stream and the server without a bound. Its only error is
// an invalid Config.
func Run[K comparable](ctx context.Context, cfg Config, reconciler Reconciler[K]) error {
	return newEngine(cfg.withDefaults(), reconciler).runEngine(ctx)
}
