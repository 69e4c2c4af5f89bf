// Package consume is how a service follows the bus: a durable pull consumer whose
// messages only say "look at this object again", a queue of reconcile keys with one
// worker per key, and one place that settles what happens next.
//
// A message is acknowledged when every key that it touches has been reconciled, that
// is when the effect is durable in the backend. Crash at any moment: the message
// comes again, or the next start looks at everything.
package consume

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
)

// A Reconciler brings a backend to what the view says, one key at a time.
type Reconciler[K comparable] interface {
	// Keys lists what an object touches as the view holds it now, deleted or not. It only
	// reads. The engine remembers what the object touched before, so a moved reference
	// reconciles both ends.
	Keys(object event.Key) []K
	// Reconcile makes the backend what the view asks for under p.Key. It is called once at
	// a time per key, only while the view is complete, must be idempotent, and writes
	// nothing when there is nothing to change. It classifies its errors (package fault);
	// a person's mistake is reported, and no error.
	Reconcile(ctx context.Context, p *Pass[K]) error
}

// A Prioritizer is a [Reconciler] some of whose keys go before others. Priority must be quick,
// and is 0 for the reconcilers that have none. Of equal keys the one that waits longest is first.
type Prioritizer[K comparable] interface {
	Priority(key K) int
}

// An Observer is a [Reconciler] that reads its backend as a whole. Observe is called once per
// resync, and lists the keys that are not as they should be: they are then reconciled with
// Pass.Resync, and no others.
type Observer[K comparable] interface {
	Observe(ctx context.Context) ([]K, error)
}

// Config of an engine. The fields up to View are required.
type Config struct {
	JS      jetstream.JetStream
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Service topology.Service
	View    *view.View
	// Takeover bounds how soon another replica takes over. Default [topology.DefaultTakeover].
	Takeover topology.Takeover
	// Place is that which every change of a backend asks for; see [Place.Left]. Default: one that
	// nobody asks.
	Place *Place

	// Binding is told whether the engine is bound. Default none.
	Binding *Binding
	// Tracer is that of the passes. Default none.
	Tracer trace.TracerProvider
	// Workers is how many keys are reconciled in parallel. Default 8.
	Workers int
	// MaxAttempts is after how many failures that are nobody else's fault a message
	// becomes a dead letter. Default 10.
	MaxAttempts int
	// Resync is how often, within a tenth, everything is compared with the backend. Default 10 min.
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
		c.Binding = &Binding{}
	}
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider()
	}
	if c.Workers <= 0 {
		c.Workers = 8
	}
	if c.Takeover == (topology.Takeover{}) {
		c.Takeover = topology.DefaultTakeover()
	}
	if c.Place == nil {
		c.Place = NewPlace(c.JS, c.Service.Name, c.Takeover, c.Log)
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

// Run follows the bus until ctx ends and then drains: work in progress is finished
// within Config.Grace, everything else goes back. It waits for the view, the stream
// and the server however long they take; its only error is a wrong Config.
func Run[K comparable](ctx context.Context, cfg Config, reconciler Reconciler[K]) error {
	return newEngine(cfg.withDefaults(), reconciler).run(ctx)
}
