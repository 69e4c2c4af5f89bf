// Package controller is what services that follow the bus have in common beside the loop of
// package consume: settings, the wiring of their parts, and how they write statuses.
//
//	parts, err := controller.Open(rt, cfg.Config, controller.Needs{OpenFGA: &cfg.OpenFGA})
//	…
//	return controller.App(parts, reconciler, handlers...), nil
package controller

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
)

// Needs says what a service has beside the bus and the API server.
type Needs struct {
	// OpenFGA is nil for a service that does not talk to it.
	OpenFGA *fga.Config
	// OneCluster keeps the objects of other clusters out of the view.
	OneCluster bool
}

// Parts are what a service is made of. Declare the tables of the view before the [App] runs.
type Parts struct {
	// Engine may be changed before the App is made.
	Engine consume.Config
	View   *view.View
	Kube   *kube.Client
	// OpenFGA is nil unless it was asked for.
	OpenFGA *fga.Client
	Status  *StatusWriter
	// Replica tells this one from others of the service.
	Replica string
	backlog *backlog
	// Announcer tells caches what changed in a store.
	Announcer *publish.Announcer
}

// Open makes the parts of the service that rt bears the name of. It connects to nothing yet.
func Open(rt *service.Runtime, cfg Config, needs Needs) (*Parts, error) {
	place := consume.NewPlace(rt.JS, rt.Name, cfg.Takeover, rt.Log)
	guarded := rest.CopyConfig(rt.Kube)
	guarded.Wrap(place.Guard)
	api, err := kube.New(guarded, cfg.Cluster, rt.Name)
	if err != nil {
		return nil, err
	}
	p := &Parts{Replica: place.Replica(), Kube: api, Announcer: publish.NewAnnouncer(rt.JS, rt.Log)}
	if needs.OpenFGA != nil {
		server := *needs.OpenFGA
		server.Log, server.Tracer = rt.Log, rt.Tracer
		if p.OpenFGA, err = fga.Dial(server, place.GuardCalls()); err != nil {
			return nil, err
		}
	}
	shown := view.Config{JS: rt.JS, Service: rt.Name, Fetch: api.Fetch, Log: rt.Log}
	if needs.OneCluster {
		shown.Cluster = cfg.Cluster
	}
	p.View = view.New(shown)
	p.Status = NewStatusWriter(api, p.View, rt.Log)
	durable, _ := topology.ServiceNamed(rt.Name)
	p.Engine = consume.Config{
		JS: rt.JS, Log: rt.Log, Metrics: rt.Metrics, Binding: &consume.Binding{}, Tracer: rt.Tracer,
		Service: durable, View: p.View, Place: place, Workers: cfg.Workers, Resync: cfg.Resync,
		Takeover: cfg.Takeover, MaxDelay: cfg.MaxDelay,
	}
	p.backlog = newBacklog(func(ctx context.Context) (topology.Backlog, error) { return topology.ReadBacklog(ctx, rt.JS, rt.Name) },
		rt.Name, rt.Metrics, rt.Log)
	rt.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "entail_view_age_seconds", Help: "How old what the service decides from may be.",
		ConstLabels: prometheus.Labels{"service": rt.Name},
	}, func() float64 { return p.View.Age().Seconds() }))
	rt.Log.Info("following the bus", slog.Int("workers", cfg.Workers), slog.Duration("resync", cfg.Resync))
	return p, nil
}

// App is a service that feeds its view, reconciles, and answers questions.
func App[K comparable](p *Parts, r consume.Reconciler[K], handlers ...rpc.Handler) service.App {
	app := service.App{
		Handlers: handlers,
		Ready: []service.Check{
			{Name: "view", Err: p.View.Complete}, {Name: "consumer", Err: p.Engine.Binding.Err}, {Name: "turn", Err: p.Engine.Place.Err},
		},
		Tasks: []func(context.Context) error{
			p.View.Run,
			p.Announcer.Run,
			func(ctx context.Context) error { return consume.Run(ctx, p.Engine, r) },
			p.backlog.run,
		},
	}
	if p.OpenFGA != nil {
		app.Ready = append(app.Ready, service.Check{Name: "openfga", Err: p.OpenFGA.Healthy})
		app.Tasks = append(app.Tasks, p.OpenFGA.Probe)
	}
	app.Close = func() error {
		p.Announcer.Flush()
		if p.OpenFGA == nil {
			return nil
		}
		return p.OpenFGA.Close()
	}
	return app
}
