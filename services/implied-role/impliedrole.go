// Package impliedrole keeps the RoleBindings that follow from ImpliedRoles: who is bound to
// a parent role is bound to its child roles, too, for as long as a rule says so.
//
// What follows from what is decided in package infer; this package finds out what there
// is, carries out what is to be done, and answers questions about it.
package impliedrole

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/projection"
	"github.com/entail-dev/entail/services/implied-role/internal/query"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
)

// Run runs implied-role until ctx ends or a part of it fails.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", topology.ImpliedRole, err)
	}
	return service.Run(ctx, topology.ImpliedRole, cfg.Config.Config, func(_ context.Context, rt *service.Runtime) (service.App, error) {
		return build(cfg, rt)
	})
}

// deadline bounds one look at a namespace, which may have to make many bindings.
const deadline = 10 * time.Minute

func build(cfg Config, rt *service.Runtime) (service.App, error) {
	api, err := kube.New(rt.Kube, cfg.Cluster, topology.ImpliedRole)
	if err != nil {
		return service.App{}, err
	}
	v := view.New(view.Config{JS: rt.JS, Cluster: cfg.Cluster, Fetch: api.Fetch, Log: rt.Log})
	s := state.New(v, cfg.Cluster, cfg.Policy)
	r := &reconciler{
		State: s, spaces: newSpaces(), view: v, api: api, log: rt.Log,
		metrics: newMetrics(rt.Metrics, s), writers: make(chan struct{}, cfg.Writers),
	}
	var closing func() error
	if cfg.ProjectStore != "" {
		openFGA, err := fga.Dial(cfg.OpenFGA)
		if err != nil {
			return service.App{}, err
		}
		closing = openFGA.Close
		roles, _ := projection.ParseRoles(cfg.ProjectRoles)
		r.projection = projection.New(projection.Config{
			OpenFGA: openFGA, Store: cfg.ProjectStore, Roles: roles, Log: rt.Log,
			Rules: func(namespace string) *infer.RuleSet { rules, _ := s.RuleSet(namespace); return rules },
		})
	}
	named, _ := topology.ServiceNamed(topology.ImpliedRole)
	engine := consume.Config{
		JS: rt.JS, Log: rt.Log, Metrics: rt.Metrics, Service: named, View: v, Workers: cfg.Workers, Resync: cfg.Resync, Deadline: deadline,
	}
	changes := query.NewWatchCache(s, strconv.FormatUint(rand.Uint64(), 36), v.Complete)
	v.OnChange(changes.Changed)
	v.OnReload(changes.Reloaded)
	server := query.NewServer(query.Config{
		State: s, Complete: v.Complete, Revision: v.Revision, Finished: r.finished, Lister: api, Changes: changes,
	})
	return service.App{
		Handlers: []rpc.Handler{rpc.NewHandler(inferencev1connect.InferenceServiceName, inferencev1connect.NewInferenceServiceHandler,
			inferencev1connect.InferenceServiceHandler(server), query.Access())},
		Ready: []service.Check{{Name: "view", Err: v.Complete}},
		Tasks: []func(context.Context) error{
			v.Run,
			changes.Run,
			func(ctx context.Context) error { return consume.Run(ctx, engine, r) },
		},
		Close: closing,
	}, nil
}
