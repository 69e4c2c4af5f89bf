// Package webhook answers which access subjects have, and by which bindings, from the declared objects of IAM. It
// follows them on NATS and keeps them in the in-memory index of package authz.
//
// A question is answered only while the informer is complete and fresh. Every replica answers by itself, without a
// leader. The package writes neither objects of IAM nor tuples of OpenFGA.
package webhook

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/webhook/internal/authorizer"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

// Run runs webhook until ctx ends or a part of it fails.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", topology.Webhook, err)
	}
	w := &admissionWebhooks{cfg: cfg}
	return service.Run(ctx, topology.Webhook, cfg.Config, func(_ context.Context, rt *service.Runtime) (service.App, error) {
		return buildApp(cfg, rt, w)
	}, w.openAdmissionServer)
}

func buildApp(cfg Config, rt *service.Runtime, w *admissionWebhooks) (service.App, error) {
	api, err := kube.New(rt.Kube, cfg.Cluster, rt.Name)
	if err != nil {
		return service.App{}, err
	}
	state := newIndexState(informer.Config{JS: rt.JS, Service: rt.Name, Cluster: cfg.Cluster, FetchLargeObject: api.FetchLargeObject, Log: rt.Log},
		cfg.UnobservedTargets == trust)
	v := state.view
	accounts, err := review.CompileAccountNames(cfg.AccountNames)
	if err != nil {
		return service.App{}, err
	}
	rt.Metrics.MustRegister(
		newReplicaGauge(prometheus.GaugeOpts{
			Name: "entail_view_age_seconds", Help: "Greatest possible age in seconds of the data from which the service decides.",
		}, func() float64 { return v.Staleness().Seconds() }),
		newReplicaGauge(prometheus.GaugeOpts{
			Name: "entail_view_position", Help: "Sequence number in the stream of changes up to which the replica has read every message.",
		}, func() float64 { return revisionSequence(v.Revision()) }),
		newReplicaGauge(prometheus.GaugeOpts{
			Name: "entail_view_last_change", Help: "Sequence number of the last change that the replica has read. Later messages of the stream are no changes.",
		}, func() float64 { return float64(v.LastChangeSequence()) }),
		newReplicaGauge(prometheus.GaugeOpts{
			Name: "entail_view_digest", Help: "Digest of all objects that the replica holds. Replicas with the same last change have the same digest.",
		}, func() float64 { return float64(v.ContentDigest() >> 12) }), // The 52 bits that a float64 holds exactly.
	)
	s := &accessServer{
		state: state, decider: state, view: v,
		rules: review.NewTrustRules(review.TrustRules{
			Subject: cfg.Subject, Accounts: accounts, Anonymous: cfg.Anonymous, TrustParents: cfg.TrustParents, Namespaced: state.targets.isNamespacedType,
		}),
		cluster: cfg.Cluster, store: cfg.Store, staleness: cfg.MaxStaleness,
		fetch: api.FetchLargeObject, limiter: rpc.NewCallLimiter(maxTurns), waits: rpc.NewCallLimiter(maxWaits),
	}
	app := service.App{
		Handlers: []rpc.Handler{s.rpcHandler()},
		Ready:    []service.ReadinessCheck{{Name: "view", Err: s.checkIndexIsFresh}, {Name: "admission", Err: w.registrationErr}},
		Tasks:    []func(context.Context) error{v.Run},
	}
	if cfg.needsOpenFGA() {
		if err := s.configureOpenFGA(cfg, rt, api, &app); err != nil {
			return service.App{}, err
		}
	}
	w.connectValidator(s)
	if cfg.Authorizer.Enabled() {
		a, err := authorizer.New(cfg.Authorizer, authorizer.Options{
			Rules: s.rules, Registry: s.currentRegistry, Decide: s.decider.Decide,
			Log: rt.Log, Metrics: rt.Metrics, Tracer: rt.Tracer, Propagator: rt.Propagator,
		})
		if err != nil {
			return service.App{}, err
		}
		rt.Log.Info("the API server is answered", "address", a.Addr().String(), "shadow", cfg.Authorizer.Shadow)
		app.Tasks = append(app.Tasks, a.Run)
	}
	return app, nil
}

// newReplicaGauge returns a metric of this replica.
func newReplicaGauge(opts prometheus.GaugeOpts, value func() float64) prometheus.Collector {
	opts.ConstLabels = prometheus.Labels{"service": topology.Webhook}
	return prometheus.NewGaugeFunc(opts, value)
}

// revisionSequence returns the sequence of a revision, or 0 if the revision is empty.
func revisionSequence(revision string) float64 {
	sequence, _, err := topology.ParseRevision(revision)
	if err != nil {
		return 0
	}
	return float64(sequence)
}

// configureOpenFGA configures OpenFGA as the decider, or as the check for a share of index answers. Readiness requires
// OpenFGA only if it decides.
func (s *accessServer) configureOpenFGA(cfg Config, rt *service.Runtime, api *kube.Client, app *service.App) error {
	cfg.OpenFGA.Log, cfg.OpenFGA.Tracer = rt.Log, rt.Tracer
	client, err := fga.Dial(cfg.OpenFGA)
	if err != nil {
		return fmt.Errorf("preparing to ask OpenFGA: %w", err)
	}
	asked := &openFGADecider{backend: client, index: s.state.currentIndex, store: s.iamStore, cluster: api.ClusterUID, seconds: newCheckSeconds()}
	rt.Metrics.MustRegister(asked.seconds)
	app.Tasks, app.Close = append(app.Tasks, client.RunProbes), client.Close
	if cfg.Decide == byOpenFGA {
		if cfg.Cached > 0 {
			asked.cache = newAnswerCache(cfg.Cached, s.view.Staleness)
			rt.Metrics.MustRegister(asked.cache.hits, asked.cache.misses)
		}
		s.decider = openFGAAndIndexDecider{openFGA: asked, index: s.state}
		app.Ready = append(app.Ready, service.ReadinessCheck{Name: byOpenFGA, Err: client.HealthErr})
		return nil
	}
	v := newDecisionVerifier(s.state, asked, cfg.Verify)
	v.fresh, v.log, s.decider = s.checkIndexIsFresh, rt.Log, v
	rt.Metrics.MustRegister(v.outcomes)
	app.Tasks = append(app.Tasks, v.compareQueuedQueries)
	return nil
}
