// Package setup connects the parts of a service that reconciles changes: its settings, informer, controller, backends
// and status writer. Package controller holds the reconcile loop itself.
//
//	parts, err := setup.BuildParts(rt, cfg.Config, setup.RequiredBackends{OpenFGA: &cfg.OpenFGA})
//	…
//	return setup.NewApp(parts, reconciler, handlers...), nil
package setup

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
)

// RequiredBackends lists the backends that a service requires, in addition to NATS and the API server.
type RequiredBackends struct {
	// OpenFGA is nil for a service that does not use OpenFGA.
	OpenFGA *fga.Config
	// OneCluster restricts the informer to the objects of the service's own cluster.
	OneCluster bool
}

// ServiceParts holds the parts of a service. Add the listers to View before [NewApp] starts the service.
type ServiceParts struct {
	// Engine may be changed before [NewApp] is called.
	Engine controller.Config
	View   *informer.Informer
	Kube   *kube.Client
	// OpenFGA is nil unless [RequiredBackends] requested it.
	OpenFGA *fga.Client
	Status  *StatusWriter
	// Replica is the ID of this replica.
	Replica string
	backlog *backlogExporter
	Log     *slog.Logger
}

// BuildParts creates the parts of a service. It opens no connection.
func BuildParts(rt *service.Runtime, cfg Config, needs RequiredBackends) (*ServiceParts, error) {
	elector := leader.NewElector(rt.JS, rt.Name, cfg.Takeover, rt.Log)
	guarded := rest.CopyConfig(rt.Kube)
	guarded.Wrap(elector.FenceTransport)
	api, err := kube.New(guarded, cfg.Cluster, rt.Name)
	if err != nil {
		return nil, err
	}
	p := &ServiceParts{Replica: elector.ReplicaID(), Kube: api, Log: rt.Log}
	if needs.OpenFGA != nil {
		server := *needs.OpenFGA
		server.Log, server.Tracer = rt.Log, rt.Tracer
		if p.OpenFGA, err = fga.Dial(server, elector.FenceDialOption()); err != nil {
			return nil, err
		}
	}
	shown := informer.Config{JS: rt.JS, Service: rt.Name, FetchLargeObject: api.FetchLargeObject, Log: rt.Log}
	if needs.OneCluster {
		shown.Cluster = cfg.Cluster
	}
	p.View = informer.New(shown)
	p.Status = NewStatusWriter(api, p.View, rt.Log)
	durable, _ := topology.FindService(rt.Name)
	p.Engine = controller.Config{
		JS: rt.JS, Log: rt.Log, Metrics: rt.Metrics, Binding: &leader.ConsumerBinding{}, Tracer: rt.Tracer,
		Service: durable, View: p.View, Elector: elector, Workers: cfg.Workers, Resync: cfg.Resync,
		Takeover: cfg.Takeover, MaxDelay: cfg.MaxDelay,
	}
	p.backlog = newBacklogExporter(func(ctx context.Context) (topology.ConsumerBacklog, error) {
		return topology.ReadBacklog(ctx, rt.JS, rt.Name)
	},
		rt.Name, rt.Metrics, rt.Log)
	rt.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "entail_view_age_seconds", Help: "Greatest possible age in seconds of the data from which the service decides.",
		ConstLabels: prometheus.Labels{"service": rt.Name},
	}, func() float64 { return p.View.Staleness().Seconds() }))
	rt.Log.Info("following the bus", slog.Int("workers", cfg.Workers), slog.Duration("resync", cfg.Resync))
	return p, nil
}

// NewApp returns the App that runs the informer, the controller and the handlers.
func NewApp[K comparable](p *ServiceParts, r controller.Reconciler[K], handlers ...rpc.Handler) service.App {
	app := service.App{
		Handlers: handlers,
		Ready: []service.ReadinessCheck{
			{Name: "view", Err: p.View.IncompleteErr}, {Name: "consumer", Err: p.Engine.Binding.Err}, {Name: "turn", Err: p.Engine.Elector.Err},
		},
		Tasks: []func(context.Context) error{
			p.View.Run,
			func(ctx context.Context) error { return controller.Run(ctx, p.Engine, r) },
			p.backlog.runExportLoop,
		},
	}
	if p.OpenFGA != nil {
		app.Ready = append(app.Ready, service.ReadinessCheck{Name: "openfga", Err: p.OpenFGA.HealthErr})
		app.Tasks = append(app.Tasks, p.OpenFGA.RunProbes)
	}
	app.Close = func() error {
		if p.OpenFGA == nil {
			return nil
		}
		return p.OpenFGA.Close()
	}
	return app
}
