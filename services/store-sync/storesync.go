// Package storesync keeps one OpenFGA store per Store in step with what Kubernetes declares:
// that it exists, that its latest model is the merge of the Store's core module with all
// AuthorizationModels that refer to it, and that it goes when the Store goes. It makes
// AuthorizationModels itself, of APIs and of PolicyDocuments.
//
// What to do is decided in package store/plan, how modules merge in package model, what is made of
// APIs and of PolicyDocuments in the plans of apimodule and policymodule; this package carries it out,
// and answers questions about stores.
package storesync

import (
	"context"
	"fmt"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
	querypolicy "github.com/entail-dev/entail/services/store-sync/internal/query/policy"
)

// Run runs store-sync until ctx ends or a part of it fails.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", topology.StoreSync, err)
	}
	return service.Run(ctx, topology.StoreSync, cfg.Config, func(_ context.Context, rt *service.Runtime) (service.App, error) {
		return build(cfg, rt)
	})
}

func build(cfg Config, rt *service.Runtime) (service.App, error) {
	api, err := kube.New(rt.Kube, cfg.Cluster, topology.StoreSync)
	if err != nil {
		return service.App{}, err
	}
	openFGA, err := fga.Dial(cfg.OpenFGA)
	if err != nil {
		return service.App{}, err
	}
	v := view.New(view.Config{JS: rt.JS, Fetch: api.Fetch, Log: rt.Log})
	r := &reconciler{
		objects: newObjects(v, cfg.Cluster, cfg.Discovery, api), view: v, kube: api, fga: openFGA, log: rt.Log, merges: newMerges(cfg.Limits),
		announce: func(ctx context.Context, m *eventv1.StoreChanged) error { return publish.Announce(ctx, rt.JS, m) },
	}
	v.OnReload(r.discovery.Invalidate)
	v.OnChange(r.noticed)
	named, _ := topology.ServiceNamed(topology.StoreSync)
	engine := consume.Config{
		JS: rt.JS, Log: rt.Log, Metrics: rt.Metrics, Service: named, View: v, Workers: cfg.Workers, Resync: cfg.Resync,
	}
	stores := &server{objects: r.objects, complete: v.Complete, fga: openFGA, merges: r.merges}
	return service.App{
		Handlers: []rpc.Handler{
			rpc.NewHandler(storev1connect.StoreServiceName, storev1connect.NewStoreServiceHandler,
				storev1connect.StoreServiceHandler(stores), access()),
			rpc.NewHandler(policyv1connect.PolicyServiceName, policyv1connect.NewPolicyServiceHandler,
				policyv1connect.PolicyServiceHandler(querypolicy.New(stores.registered)), querypolicy.Access()),
		},
		Ready: []service.Check{{Name: "view", Err: v.Complete}},
		Tasks: []func(context.Context) error{
			v.Run,
			func(ctx context.Context) error { return consume.Run(ctx, engine, r) },
		},
		Close: openFGA.Close,
	}, nil
}
