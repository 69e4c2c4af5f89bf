// Package storesync keeps one OpenFGA store per Store in step with what Kubernetes declares:
// that it exists, that its latest model is the merge of the Store's core module with all
// AuthorizationModels that refer to it, and that it goes when the Store goes. It makes
// AuthorizationModels itself, of APIs and of PolicyDocuments.
//
// Packages apimodule and policymodule provide modules, package model merges them, package store
// keeps the OpenFGA store in step; this package wires them, and gives each its turn.
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
	"github.com/entail-dev/entail/services/internal/policy"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/apimodule"
	querypolicy "github.com/entail-dev/entail/services/store-sync/internal/query/policy"
	querystore "github.com/entail-dev/entail/services/store-sync/internal/query/store"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/policymodule"
	"github.com/entail-dev/entail/services/store-sync/store"
)

// Run runs store-sync until ctx ends or a part of it fails.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", topology.StoreSync, err)
	}
	return service.Run(ctx, topology.StoreSync, cfg.Config.Config, func(_ context.Context, rt *service.Runtime) (service.App, error) {
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
	shared := module.NewState(v, cfg.Cluster)
	applier := &module.Applier{State: shared, Kube: api, Log: rt.Log}
	apis, policies := apimodule.New(v, cfg.Discovery, applier), policymodule.New(v, applier)
	state, merges := store.NewState(shared, apis, policies), store.NewMergeCache(cfg.Limits)
	r := &reconciler{
		apis: apis, providers: []module.Provider{apis, policies}, state: state,
		stores: store.New(store.Config{
			State: state, Merges: merges, View: v, Kube: api, FGA: openFGA, Log: rt.Log,
			Announce: func(ctx context.Context, m *eventv1.StoreChanged) error { return publish.Announce(ctx, rt.JS, m) },
		}),
	}
	named, _ := topology.ServiceNamed(topology.StoreSync)
	engine := consume.Config{
		JS: rt.JS, Log: rt.Log, Metrics: rt.Metrics, Service: named, View: v, Workers: cfg.Workers, Resync: cfg.Resync,
	}
	stores := querystore.New(shared, state, merges, openFGA, v.Complete)
	return service.App{
		Handlers: []rpc.Handler{
			rpc.NewHandler(storev1connect.StoreServiceName, storev1connect.NewStoreServiceHandler,
				storev1connect.StoreServiceHandler(stores), querystore.Access()),
			rpc.NewHandler(policyv1connect.PolicyServiceName, policyv1connect.NewPolicyServiceHandler,
				policyv1connect.PolicyServiceHandler(querypolicy.New(registered(stores, policies, cfg.Cluster))), querypolicy.Access()),
		},
		Ready: []service.Check{{Name: "view", Err: v.Complete}},
		Tasks: []func(context.Context) error{
			v.Run,
			func(ctx context.Context) error { return consume.Run(ctx, engine, r) },
		},
		Close: openFGA.Close,
	}, nil
}

// registered finds the PolicyDocuments of a Store, valid or not, and the options of its policy.
func registered(stores *querystore.Server, policies *policymodule.Provider, cluster string) querypolicy.Registered {
	return func(_ context.Context, name string) ([]*policy.Document, policy.Options, error) {
		if _, err := stores.Find(name); err != nil {
			return nil, policy.Options{}, err
		}
		documents, options, err := policies.Documents(module.StoreKey(name, cluster))
		if err != nil {
			return nil, options, rpc.Invalid("Store %s: %s", name, err)
		}
		return documents, options, nil
	}
}
