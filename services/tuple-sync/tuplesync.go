// Package tuplesync keeps the relationship tuples in OpenFGA stores in step with what Stores
// and AuthorizationModels declare, and with nothing else: tuples that other software writes
// stay as they are.
//
// What to do is decided in package plan; this package finds out who wants what, carries
// the plan out, and answers questions about tuples.
package tuplesync

import (
	"context"
	"fmt"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
)

// Run runs tuple-sync until ctx ends or a part of it fails.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", topology.TupleSync, err)
	}
	return service.Run(ctx, topology.TupleSync, cfg.Config.Config, func(_ context.Context, rt *service.Runtime) (service.App, error) {
		return build(cfg, rt)
	})
}

func build(cfg Config, rt *service.Runtime) (service.App, error) {
	api, err := kube.New(rt.Kube, cfg.Cluster, topology.TupleSync)
	if err != nil {
		return service.App{}, err
	}
	openFGA, err := fga.Dial(cfg.OpenFGA)
	if err != nil {
		return service.App{}, err
	}
	v := view.New(view.Config{JS: rt.JS, Fetch: api.Fetch, Log: rt.Log})
	r := &reconciler{
		scene: newScene(v), view: v, cluster: api, openFGA: openFGA, cache: newModels(openFGA), log: rt.Log,
		announce: func(ctx context.Context, m *eventv1.StoreChanged) error { return publish.Announce(ctx, rt.JS, m) },
	}
	if cfg.AllowMemberTuples {
		r.accountType = cfg.AccountType
	}
	named, _ := topology.ServiceNamed(topology.TupleSync)
	engine := consume.Config{
		JS: rt.JS, Log: rt.Log, Metrics: rt.Metrics, Service: named, View: v, Workers: cfg.Workers, Resync: cfg.Resync,
	}
	tuples := &server{scene: r.scene, cluster: cfg.Cluster, complete: v.Complete, models: r.cache, openFGA: openFGA}
	return service.App{
		Handlers: []rpc.Handler{rpc.NewHandler(tuplev1connect.TupleServiceName, tuplev1connect.NewTupleServiceHandler,
			tuplev1connect.TupleServiceHandler(tuples), access())},
		Ready: []service.Check{{Name: "view", Err: v.Complete}},
		Tasks: []func(context.Context) error{
			v.Run,
			func(ctx context.Context) error { return consume.Run(ctx, engine, r) },
		},
		Close: openFGA.Close,
	}, nil
}
