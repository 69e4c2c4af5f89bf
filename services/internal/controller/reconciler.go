// Package controller runs the reconciler of a service. It has a durable pull consumer, a queue of keys, and one
// function that settles messages. A message only means "reconcile this object again".
//
// A message is acknowledged when every key that it affects has been reconciled, so its effect is durable in the
// backend. After a crash the message is delivered again, or the next start reconciles everything. Each key is
// reconciled by one worker at a time.
//
// Only the leader writes (see [leader.Elector]). The package knows no backend; a service implements [Reconciler].
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

// A Reconciler brings a backend to the state that the informer declares, one key at a time.
type Reconciler[K comparable] interface {
	// AffectedKeys lists the keys that an object affects in its present state, even if it is deleted. It only reads.
	// The engine also remembers the previous keys of an object, so that both keys are reconciled when a reference
	// moves.
	AffectedKeys(object event.Key) []K
	// Reconcile brings the backend to the state that the informer declares for p.Key. It never runs twice at the same
	// time for one key, and begins only while the informer is complete. Its writes fail once the informer is incomplete or
	// has loaded the stream again. It must be idempotent and must write nothing if nothing changed.
	//
	// It classifies its errors with package fault. A user's mistake belongs in a status condition, not in the error.
	Reconcile(ctx context.Context, p *Request[K]) error
}

// A Prioritizer is a [Reconciler] that reconciles some keys before others. Priority must be quick. The default
// priority is 0. Among equal priorities, the key that has waited longest is first.
type Prioritizer[K comparable] interface {
	Priority(key K) int
}

// DriftDetector is a [Reconciler] that can read its whole backend at once. The engine calls DriftedKeys once per
// resync. It returns the keys whose state differs from the backend, and only these are reconciled, with
// [Request].Resync set.
type DriftDetector[K comparable] interface {
	DriftedKeys(ctx context.Context) ([]K, error)
}

// Config configures the controller. The fields up to View are required.
type Config struct {
	JS      jetstream.JetStream
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Service topology.Service
	View    *informer.Informer
	// Takeover bounds the time until another replica takes over. Default [topology.DefaultTakeoverBounds].
	Takeover topology.TakeoverBounds
	// Elector elects the leader of the service. Every write to a backend must check [leader.Elector.LeaseRemaining].
	// By default, a new Elector is used, and no client of a backend checks it.
	Elector *leader.Elector

	// Binding receives whether the consumer is bound. Optional.
	Binding *leader.ConsumerBinding
	// Tracer traces the reconciliations. By default nothing is traced.
	Tracer trace.TracerProvider
	// Workers bounds the number of keys that are reconciled in parallel. Default 8.
	Workers int
	// MaxAttempts bounds the failures of a key that were not caused by a dependency. After MaxAttempts failures its
	// messages become dead letters. Default 10.
	MaxAttempts int
	// Resync is the interval between two comparisons of everything with the backend, varied by 10 %. Default 10 min.
	Resync time.Duration
	// Deadline bounds one reconciliation. Default 2 min.
	Deadline time.Duration
	// Grace bounds the drain at shutdown. Default 10 s.
	Grace time.Duration
	// MinDelay and MaxDelay bound the wait before a retry. Defaults 200 ms and 30 s.
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

// Run consumes changes until ctx ends, and then drains: it finishes the running reconciliations within Config.Grace
// and returns all other messages to the server. It waits without a limit for the informer, the stream and the server.
// It always returns nil.
func Run[K comparable](ctx context.Context, cfg Config, reconciler Reconciler[K]) error {
	return newEngine(cfg.withDefaults(), reconciler).runEngine(ctx)
}
