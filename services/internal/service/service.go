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

// Runtime is what a service is built on. Everything in it is live: the streams exist,
// but for the watcher, which makes them.
type Runtime struct {
	// Name of the service.
	Name string
	Log  *slog.Logger
	NATS *nats.Conn
	JS   jetstream.JetStream
	// Kube leads to the API server; copy it before changing it.
	Kube    *rest.Config
	Metrics *prometheus.Registry
	// Tracer's spans go nowhere unless an OTLP endpoint is set; log lines name their traces anyway.
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
}

// App is a service, built.
type App struct {
	// Handlers are its query APIs.
	Handlers []rpc.Handler
	// Ready must all hold for the service to get traffic, beside the connection to the bus.
	Ready []Check
	// Tasks run until their context ends, and then finish what they began. One that
	// returns earlier, with an error or without, ends the service.
	Tasks []func(ctx context.Context) error
	// Close frees what tasks and calls used, after the last of them. It may be nil.
	Close func() error
}

// Check is one condition of readiness. Err must not block; nil means that it holds.
type Check struct {
	Name string
	Err  func() error
}

// Early makes a task that needs no bus: it runs from the start, and to the end of the last call. Its
// runtime has none yet.
type Early func(rt *Runtime) (task func(ctx context.Context) error, err error)

// Build makes the service on a runtime. It must not block: what takes time is a task. Its
// context ends when the shutdown begins.
type Build func(ctx context.Context, rt *Runtime) (App, error)
