// Package webhook answers who may do what, and why, from the declared objects of IAM: it follows
// them on the bus, and keeps in memory what package decide needs of them. Every replica answers
// for itself.
package webhook

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
)

// Run runs webhook until ctx ends or a part of it fails.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", topology.Webhook, err)
	}
	return service.Run(ctx, topology.Webhook, cfg.Config, func(_ context.Context, rt *service.Runtime) (service.App, error) {
		return build(cfg, rt)
	})
}

func build(cfg Config, rt *service.Runtime) (service.App, error) {
	api, err := kube.New(rt.Kube, cfg.Cluster, rt.Name)
	if err != nil {
		return service.App{}, err
	}
	v := view.New(view.Config{JS: rt.JS, Service: rt.Name, Cluster: cfg.Cluster, Fetch: api.Fetch, Blank: true, Log: rt.Log})
	rt.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "entail_view_age_seconds", Help: "How old what the service decides from may be.", ConstLabels: prometheus.Labels{"service": rt.Name},
	}, func() float64 { return v.Age().Seconds() }))
	s := &server{
		state: newState(v, cfg.UnobservedTargets == trust), view: v,
		cluster: cfg.Cluster, store: cfg.Store, subject: cfg.Subject, staleness: cfg.MaxStaleness,
		fetch: api.Fetch, turns: rpc.NewTurns(maxTurns), waits: rpc.NewTurns(maxWaits),
	}
	return service.App{
		Handlers: []rpc.Handler{s.handler()},
		Ready:    []service.Check{{Name: "view", Err: s.fresh}},
		Tasks:    []func(context.Context) error{v.Run},
	}, nil
}
