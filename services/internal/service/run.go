package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/tracing"
)

// Bounds of the steps of a shutdown. Together with the drain of NATS they are below the 30 seconds that Kubernetes
// allows.
const (
	taskDrainTimeout  = 12 * time.Second
	serverStopTimeout = 7 * time.Second
	traceFlushTimeout = 2 * time.Second
)

// Run runs a service until ctx ends or a part of the service fails. It returns nil if ctx ended. It answers probes
// from the start, also while it waits for NATS. Tasks in early do not wait for NATS either.
//
// The shutdown has this order: not ready, tasks finish, running calls finish, the app closes, NATS is drained.
func Run(ctx context.Context, name string, cfg Config, build BuildFunc, early ...EarlyTask) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("settings of %s: %w", name, err)
	}
	rt, flush, err := newRuntime(ctx, name, cfg)
	if err != nil {
		return fmt.Errorf("preparing %s: %w", name, err)
	}
	rt.Log.Info("starting", "config", cfg)
	p := &serviceRun{rt: rt, cfg: cfg, build: build, early: early, ready: &readiness{}}
	err = errors.Join(p.runService(ctx), flush())
	rt.Log.Info("stopped")
	return err
}

// newRuntime creates the parts that need no other system. The returned function exports the remaining traces.
func newRuntime(ctx context.Context, name string, cfg Config) (*Runtime, func() error, error) {
	kube, err := newRESTConfig(name, cfg)
	if err != nil {
		return nil, nil, err
	}
	tracer, shutdown, err := newTracerProvider(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	kube.Wrap(tracing.WrapTransport(tracer))
	flush := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlushTimeout)
		defer cancel()
		return shutdown(ctx)
	}
	return &Runtime{
		Name: name, Log: newLogger(name, cfg), Kube: kube, Metrics: newMetricsRegistry(),
		Tracer: tracer, Propagator: propagation.TraceContext{},
	}, flush, nil
}

// serviceRun is one run of a service.
type serviceRun struct {
	rt    *Runtime
	cfg   Config
	build BuildFunc
	early []EarlyTask
	ready *readiness

	server *rpc.Server
	bus    *natsConnection
	app    App
	tasks  *taskGroup
}

func (p *serviceRun) runService(ctx context.Context) error {
	alive, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := p.openRPCServer(); err != nil {
		return err
	}
	apart := []func(context.Context) error{p.server.Run}
	for _, early := range p.early {
		task, err := early(p.rt)
		if err != nil {
			return err
		}
		apart = append(apart, task)
	}
	serving := startTasks(ctx, fail, apart...)
	err := p.startService(alive, fail)
	switch {
	case err == nil:
		<-alive.Done()
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err = nil // The shutdown began during the start.
	}
	cause := context.Cause(alive) // The cause is read before drainAndClose closes the connection.
	p.rt.Log.Info("stopping", "cause", cause)
	p.ready.stopping.Store(true)
	err = errors.Join(err, p.tasks.stopTasks(taskDrainTimeout), serving.stopTasks(serverStopTimeout), p.closeService())
	p.bus.drainAndClose()
	if ctx.Err() == nil && !errors.Is(err, cause) {
		return errors.Join(cause, err)
	}
	return err
}

func (p *serviceRun) openRPCServer() error {
	server, err := rpc.New(rpc.Config{
		Address: p.cfg.RPC.Listen, Listener: p.cfg.Embed.Listener, TLS: p.cfg.RPC.TLS, Auth: p.cfg.RPC.Auth, Kube: p.rt.Kube,
		Ready: p.ready.Err, Log: p.rt.Log, Metrics: p.rt.Metrics, Tracer: p.rt.Tracer, Propagator: p.rt.Propagator,
	})
	if err != nil {
		return err
	}
	p.rt.Log.Info("listening", "address", server.Addr().String())
	p.server = server
	return nil
}

// startService connects to NATS, builds the service, and starts its tasks.
func (p *serviceRun) startService(ctx context.Context, fail func(error)) error {
	var err error
	if p.bus, err = connectNATS(ctx, p.rt, p.cfg, fail); err != nil {
		return err
	}
	p.rt.NATS, p.rt.JS = p.bus.conn, p.bus.js
	if p.app, err = p.build(ctx, p.rt); err != nil {
		return fmt.Errorf("creating the service: %w", err)
	}
	if err := p.server.Mount(p.app.Handlers...); err != nil {
		return err
	}
	pulse := &jetStreamProbe{conn: p.bus.conn, js: p.bus.js, service: p.rt.Name, log: p.rt.Log, begun: time.Now()}
	p.tasks = startTasks(ctx, fail, append(p.app.Tasks, pulse.Run)...)
	checks := append([]ReadinessCheck{newNATSConnectedCheck(p.bus.conn), pulse.readinessCheck()}, p.app.Ready...)
	p.ready.checks.Store(&checks)
	return nil
}

func (p *serviceRun) closeService() error {
	if p.app.Close == nil {
		return nil
	}
	return p.app.Close()
}
