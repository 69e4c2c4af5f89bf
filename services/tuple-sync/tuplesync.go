// Package tuplesync keeps the relationship tuples in OpenFGA in step with what Stores and AuthorizationModels declare.
// It leaves tuples of other software as they are. In the IAM store it also keeps the tuples of roles, bindings, groups
// and users; it removes all other tuples of their types.
//
// Packages declared and derived do the work. This package assembles the service, and holds what both share: the writer and
// the model cache.
package tuplesync

import (
	"context"
	"fmt"

	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/tuple-sync/declared"
	"github.com/entail-dev/entail/services/tuple-sync/derived"
	"github.com/entail-dev/entail/services/tuple-sync/internal/query"
)

// Run runs tuple-sync until ctx ends or a part fails.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", topology.TupleSync, err)
	}
	return service.Run(ctx, topology.TupleSync, cfg.Config.Config, func(_ context.Context, rt *service.Runtime) (service.App, error) {
		return buildApp(cfg, rt)
	})
}

func buildApp(cfg Config, rt *service.Runtime) (service.App, error) {
	parts, err := setup.BuildParts(rt, cfg.Config, setup.RequiredBackends{OpenFGA: &cfg.OpenFGA})
	if err != nil {
		return service.App{}, err
	}
	accountType := ""
	if cfg.AllowMemberTuples {
		accountType = cfg.AccountType
	}
	store := event.Key{Cluster: cfg.Cluster, GroupResource: kinds.Stores().GroupResource, Name: cfg.IAMStore}
	state, models := declared.NewState(parts.View, store, accountType), newModelCache(parts.OpenFGA)
	iam := derived.NewState(parts.View, state.Stores, store, cfg.UnobservedTargets == trust)
	metrics := newWriteMetrics(rt.Metrics, state.UnreadableCount)
	rt.Metrics.MustRegister(newLostReferencesGauge(parts.View.IncompleteErr, iam.LostReferences))
	writer := &storeWriter{openFGA: parts.OpenFGA, metrics: metrics}
	r := &reconciler{declared: declared.New(declared.Config{
		State: state, View: parts.View, Home: cfg.Cluster, Cluster: parts.Kube, Status: parts.Status, OpenFGA: parts.OpenFGA, Models: models, Log: rt.Log,
		Replica: parts.Replica, Now: bootclock.Now, Settling: cfg.Takeover.SettlingTime, Writer: writer,
		Retention: cfg.RemovedTuplesRetention, Restored: func(n int) { metrics.restored.Add(float64(n)) },
	}), derived: derived.New(derived.Config{
		State: iam, View: parts.View, Verifier: verify.New(parts.View, parts.Kube, cfg.Cluster, rt.Log, rt.Metrics),
		Cluster: parts.Kube, Status: parts.Status,
		OpenFGA: parts.OpenFGA, Writer: &batchWriter{writer: writer}, Models: models, Log: rt.Log, Metrics: rt.Metrics,
	})}
	state.SetIAMStoreEmptied(r.derived.IsIAMStoreEmptied)
	r.outages = setup.NewOutageReporter(rt.Log, func(ctx context.Context, key Key, why setup.Outage) error {
		if of, is := key.derivedKey(); is {
			return r.derived.WriteOutageStatuses(ctx, of, why)
		}
		return r.declared.WriteOutageStatuses(ctx, key.declaredKey(), why)
	})
	answers := query.New(query.Config{
		State: state, Cluster: cfg.Cluster, Complete: parts.View.IncompleteErr, Models: models, OpenFGA: parts.OpenFGA,
		IAMStore: cfg.IAMStore, IAM: r.derived, LostReferences: iam.LostReferences, Kube: parts.Kube, ListLimits: cfg.ListLimits,
	})
	app := setup.NewApp(parts, r, answers.Handler())
	app.Tasks = append(app.Tasks, r.outages.Run)
	return app, nil
}
