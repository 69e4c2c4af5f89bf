// Package impliedrole keeps the RoleBindings that follow from ImpliedRoles. A subject that is bound to a parent role is
// also bound to its child roles, as long as a rule holds.
//
// Package infer computes the desired bindings. This package observes the cluster, executes the plans, and serves
// queries. It gives a role only after the API server has confirmed the source and the rules. It takes roles away
// without such a check.
package impliedrole

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/implied-role/internal/projection"
	"github.com/entail-dev/entail/services/implied-role/internal/query"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Run runs implied-role until ctx ends or a part of it fails.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", topology.ImpliedRole, err)
	}
	w := &admissionWebhooks{cfg: cfg}
	return service.Run(ctx, topology.ImpliedRole, cfg.Config.Config, func(_ context.Context, rt *service.Runtime) (service.App, error) {
		return buildApp(cfg, rt, w)
	}, w.openAdmissionServer)
}

// deadline bounds one pass over a namespace, which may have to create many bindings.
const deadline = 10 * time.Minute

// statusShare is the number of RoleBinding writers per status writer. Many status writes in parallel keep the API
// server busy, and delay the revocation of roles.
const statusShare = 16

func buildApp(cfg Config, rt *service.Runtime, w *admissionWebhooks) (service.App, error) {
	needs := setup.RequiredBackends{OneCluster: true}
	if cfg.ProjectStore != "" {
		needs.OpenFGA = &cfg.OpenFGA
	}
	parts, err := setup.BuildParts(rt, cfg.Config, needs)
	if err != nil {
		return service.App{}, err
	}
	parts.Engine.Deadline = deadline
	cfg.Policy.Unguarded = !cfg.Admission.Enabled() && !cfg.WithoutGuard
	s, v := state.New(parts.View, cfg.Cluster, cfg.Policy), parts.View
	memory, watchCache := newPassHistory(s), query.NewWatchCache(s, strconv.FormatUint(rand.Uint64(), 36), v.IncompleteErr)
	r := &reconciler{
		state: s, memory: memory,
		statuses: &statusReconciler{
			state: s, memory: memory, writer: parts.Status, since: w.authorsCheckedSince, log: rt.Log,
			writers: make(chan struct{}, (cfg.Writers+statusShare-1)/statusShare),
		},
		applier: &planApplier{
			state: s, view: v, kube: parts.Kube, metrics: newMetrics(rt.Metrics, s), log: rt.Log, writers: make(chan struct{}, cfg.Writers),
			guard: w.coverNamespace,
		},
	}
	if parts.OpenFGA != nil {
		roles, _ := projection.ParseRoleRelation(cfg.ProjectRoles)
		r.projection = projection.New(projection.Config{
			OpenFGA: parts.OpenFGA, Store: cfg.ProjectStore, Roles: roles, Log: rt.Log,
			Rules: s.RuleSet,
		})
	}
	v.OnChange(memory.RecordChange)
	v.OnChange(watchCache.MarkRuleChanged)
	v.OnReload(memory.MarkAllNamespaces)
	v.OnReload(watchCache.MarkAllChanged)
	server := query.NewServer(query.Config{
		State: s, Complete: v.IncompleteErr, Revision: v.Revision, Await: v.AwaitRevision, Finished: memory.lastSyncedAt,
		Lister: parts.Kube, NamespaceExists: namespaceReader{parts.Kube}.hasNamespace, Changes: watchCache,
		Since: w.bindingAuthorsCheckedSince,
	})
	app := setup.NewApp(parts, r, rpc.NewHandler(inferencev1connect.InferenceServiceName, inferencev1connect.NewInferenceServiceHandler,
		inferencev1connect.InferenceServiceHandler(server), query.RequiredAccess()))
	app.Tasks = append(app.Tasks, watchCache.Run)
	app.Ready = append(app.Ready, service.ReadinessCheck{Name: "admission", Err: w.registrationErr})
	w.connectValidator(v, s)
	return app, nil
}
