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

// Runtime holds the parts on which a service is built. All streams exist, unless the service is the watcher, which
// creates them.
type Runtime struct {
	// Name is the name of the service.
	Name string
	Log  *slog.Logger
	NATS *nats.Conn
	JS   jetstream.JetStream
	// Kube is the configuration for the API server. Copy it before you change it.
	Kube    *rest.Config
	Metrics *prometheus.Registry
	// Tracer exports spans only if an OTLP endpoint is set. Log records contain trace IDs in any case.
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
}

// App is a built service.
type App struct {
	// Handlers lists the query APIs of the service.
	Handlers []rpc.Handler
	// Ready lists the readiness checks of the service, in addition to those of the connection to NATS.
	Ready []ReadinessCheck
	// Tasks run until their context ends, and then finish their work in progress. A task that returns earlier stops
	// the service.
	Tasks []func(ctx context.Context) error
	// Close releases the resources of tasks and calls, after all of them have ended. It is optional.
	Close func() error
}

// ReadinessCheck is a condition of readiness. Err must not block; nil means that the condition holds.
type ReadinessCheck struct {
	Name string
	Err  func() error
}

// EarlyTask creates a task that does not need NATS. The task runs from the start until the last call has ended. rt has
// no connection to NATS.
type EarlyTask func(rt *Runtime) (task func(ctx context.Context) error, err error)

// BuildFunc builds the service from a runtime. It must not block; use tasks for long work. Its context ends when the
// shutdown begins.
type BuildFunc func(ctx context.Context, rt *Runtime) (App, error)
