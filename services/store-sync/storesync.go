// Package storesync keeps one OpenFGA store in step with each Store. The OpenFGA store exists as long as the Store
// does. Its latest model is the merge of the Store's core module with all AuthorizationModels that refer to the Store.
// Store-sync generates AuthorizationModels itself, from APIs and from PolicyDocuments.
//
// Packages apimodule, policymodule and iammodule provide modules. Package model merges them, and package store
// reconciles the OpenFGA store. This package wires them together.
package storesync

import (
	"context"
	"fmt"

	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
	"github.com/entail-dev/entail/services/store-sync/apimodule"
	"github.com/entail-dev/entail/services/store-sync/iammodule"
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
		return buildApp(cfg, rt)
	}, startWebhooks(cfg))
}

func buildApp(cfg Config, rt *service.Runtime) (service.App, error) {
	parts, err := setup.BuildParts(rt, cfg.Config, setup.RequiredBackends{OpenFGA: &cfg.OpenFGA})
	if err != nil {
		return service.App{}, err
	}
	shared := module.NewStoreListers(parts.View, cfg.Cluster)
	verifier := verify.New(parts.View, parts.Kube, cfg.Cluster, rt.Log, rt.Metrics)
	applier := &module.Applier{State: shared, Kube: parts.Kube, Log: rt.Log}
	state, merges := store.NewState(shared), store.NewMergeCache(cfg.Limits)
	apis, protected := apimodule.New(parts.View, cfg.Discovery, applier), iammodule.New(parts.View, cfg.IAMStore, applier)
	policies := policymodule.New(parts.View, applier, state.MergeAfterPlanFunc(merges))
	state.AddProviders(apis, policies, protected)
	rt.Metrics.MustRegister(store.NewMetrics(state))
	syncer := store.New(parts, state, merges, verifier, protected)
	r := &reconciler{
		apis: apis, providers: []module.Provider{apis, policies, protected}, state: state, stores: syncer,
		outages: setup.NewOutageReporter(rt.Log, func(ctx context.Context, key event.Key, why setup.Outage) error {
			return syncer.WriteOutageStatuses(ctx, key, why, protected.WaitingResources(key))
		}),
	}
	stores := querystore.New(state, merges, policies, parts.OpenFGA, parts.View.IncompleteErr)
	app := setup.NewApp(parts, r,
		rpc.NewHandler(storev1connect.StoreServiceName, storev1connect.NewStoreServiceHandler,
			storev1connect.StoreServiceHandler(stores), querystore.RequiredAccess()),
		rpc.NewHandler(policyv1connect.PolicyServiceName, policyv1connect.NewPolicyServiceHandler,
			policyv1connect.PolicyServiceHandler(querypolicy.New(registeredDocumentsFunc(shared, parts.View.IncompleteErr, policies))),
			querypolicy.RequiredAccess()),
	)
	app.Tasks = append(app.Tasks, r.outages.Run)
	return app, nil
}

// registeredDocumentsFunc returns a function that finds the PolicyDocuments of a Store and the options of its policy.
func registeredDocumentsFunc(shared *module.StoreListers, complete func() error, policies *policymodule.Provider) querypolicy.RegisteredDocumentsFunc {
	return func(ctx context.Context, name string, accepted bool) ([]*syntax.Document, policy.Options, error) {
		key := module.StoreKey(name, shared.Cluster)
		found, err := rpc.FindObject(complete, shared.Stores.Get, key)
		if err != nil {
			return nil, policy.Options{}, rpc.AddNameSuggestions(ctx, err, key.GroupResource, name, func() (names []string) {
				for _, o := range shared.Stores.All() {
					if o.Key.Cluster == shared.Cluster {
						names = append(names, o.Key.Name)
					}
				}
				return names
			})
		}
		documents, options, err := policies.ParsedDocuments(found.Key, accepted)
		if err != nil {
			return nil, options, rpc.InvalidError("Store %s: %s", name, err)
		}
		return documents, options, nil
	}
}
