package service

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/rpc"
)

// Runtime holds the parts on which a service is built. The streams exist; the watcher, which creates them, cannot rely
// on that.
type Runtime struct {
	// Name of the service.
	Name string
	Log  *slog.Logger
	NATS *nats.Conn
	JS   jetstream.JetStream
	// Kube is the configuration for the API server. Copy it before you change it.
	Kube    *rest.Config
	Metrics *prometheus.Registry
	// Tracer exports spans only if an OTLP endpoint is set. Log records name their traces in any case.
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
}

// App is a built service.
type App struct {
	// Handlers lists its query APIs.
	Handlers []rpc.Handler
	// Ready lists checks that must hold for the service to accept traffic, beside the connection to NATS.
	Ready []ReadinessCheck
	// Tasks run until their context ends, and then finish what they began. A task that returns earlier ends the
	// service.
	Tasks []func(ctx context.Context) error
	// Close releases what tasks and calls used, after the last of them. It is optional.
	Close func() error
}

// ReadinessCheck is a condition of readiness. Err must not block; nil means that it holds.
type ReadinessCheck struct {
	Name string
	Err  func() error
}

// EarlyTask creates a task that does not need NATS. It runs from the start until the last call has ended. Its runtime has
// no connection to NATS.
type EarlyTask func(rt *Runtime) (task func(ctx context.Context) error, err error)

// BuildFunc builds the service on a runtime. It must not block: long work belongs into tasks. Its context ends when the
// shutdown begins.
type BuildFunc func(ctx context.Context, rt *Runtime) (App, error)
