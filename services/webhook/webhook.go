// Package webhook answers which access subjects have, and by which bindings, from the declared objects of IAM. It
// follows them on NATS and keeps them in the in-memory index of package authz.
//
// A question is answered only while the view is complete and fresh. Every replica answers by itself, without a leader.
// The package writes neither objects of IAM nor tuples of OpenFGA.
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
	w := &webhooks{cfg: cfg}
	return service.Run(ctx, topology.Webhook, cfg.Config, func(_ context.Context, rt *service.Runtime) (service.App, error) {
		return buildApp(cfg, rt, w)
	}, w.openServer)
}

func buildApp(cfg Config, rt *service.Runtime, w *webhooks) (service.App, error) {
	api, err := kube.New(rt.Kube, cfg.Cluster, rt.Name)
	if err != nil {
		return service.App{}, err
	}
	state := newState(informer.Config{JS: rt.JS, Service: rt.Name, Cluster: cfg.Cluster, Fetch: api.Fetch, Log: rt.Log}, cfg.UnobservedTargets == trust)
	v := state.view
	accounts, err := review.AccountNames(cfg.AccountNames)
	if err != nil {
		return service.App{}, err
	}
	rt.Metrics.MustRegister(
		newGauge(prometheus.GaugeOpts{
			Name: "entail_view_age_seconds", Help: "Greatest possible age in seconds of the data from which the service decides.",
		}, func() float64 { return v.Age().Seconds() }),
		newGauge(prometheus.GaugeOpts{
			Name: "entail_view_position", Help: "Sequence number in the stream of changes up to which the replica has read every message.",
		}, func() float64 { return sequenceOf(v.Revision()) }),
		newGauge(prometheus.GaugeOpts{
			Name: "entail_view_last_change", Help: "Sequence number of the last change that the replica has read. Later messages of the stream are no changes.",
		}, func() float64 { return float64(v.Changed()) }),
		newGauge(prometheus.GaugeOpts{
			Name: "entail_view_digest", Help: "Digest of all objects that the replica holds. Replicas with the same last change have the same digest.",
		}, func() float64 { return float64(v.Digest() >> 12) }), // The 52 bits that a float64 holds exactly.
	)
	s := &server{
		state: state, decider: state, view: v,
		rules: review.NewRules(review.Rules{
			Subject: cfg.Subject, Accounts: accounts, Anonymous: cfg.Anonymous, TrustParents: cfg.TrustParents, Namespaced: state.targets.scopeOf,
		}),
		cluster: cfg.Cluster, store: cfg.Store, staleness: cfg.MaxStaleness,
		fetch: api.Fetch, limiter: rpc.NewLimiter(maxTurns), waits: rpc.NewLimiter(maxWaits),
	}
	app := service.App{
		Handlers: []rpc.Handler{s.rpcHandler()},
		Ready:    []service.Check{{Name: "view", Err: s.checkFresh}, {Name: "admission", Err: w.inForce}},
		Tasks:    []func(context.Context) error{v.Run},
	}
	if cfg.needsOpenFGA() {
		if err := s.askOpenFGA(cfg, rt, api, &app); err != nil {
			return service.App{}, err
		}
	}
	w.followState(s)
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

// newGauge returns a metric of this replica.
func newGauge(opts prometheus.GaugeOpts, value func() float64) prometheus.Collector {
	opts.ConstLabels = prometheus.Labels{"service": topology.Webhook}
	return prometheus.NewGaugeFunc(opts, value)
}

// sequenceOf returns the sequence of a revision, or 0 if the revision is empty.
func sequenceOf(revision string) float64 {
	sequence, _, err := topology.ParseRevision(revision)
	if err != nil {
		return 0
	}
	return float64(sequence)
}

// askOpenFGA configures OpenFGA as the decider, or as the check for a share of index answers. Readiness requires
// OpenFGA only if it decides.
func (s *server) askOpenFGA(cfg Config, rt *service.Runtime, api *kube.Client, app *service.App) error {
	cfg.OpenFGA.Log, cfg.OpenFGA.Tracer = rt.Log, rt.Tracer
	client, err := fga.Dial(cfg.OpenFGA)
	if err != nil {
		return fmt.Errorf("preparing to ask OpenFGA: %w", err)
	}
	asked := &openFGA{backend: client, index: s.state.currentIndex, store: s.iamStore, cluster: api.Epoch, seconds: newSeconds()}
	rt.Metrics.MustRegister(asked.seconds)
	app.Tasks, app.Close = append(app.Tasks, client.Probe), client.Close
	if cfg.Decide == byOpenFGA {
		if cfg.Cached > 0 {
			asked.cache = newCache(cfg.Cached, s.view.Age)
			rt.Metrics.MustRegister(asked.cache.hits, asked.cache.misses)
		}
		s.decider = agreed{openFGA: asked, index: s.state}
		app.Ready = append(app.Ready, service.Check{Name: byOpenFGA, Err: client.Healthy})
		return nil
	}
	v := newVerifier(s.state, asked, cfg.Verify)
	v.fresh, v.log, s.decider = s.checkFresh, rt.Log, v
	rt.Metrics.MustRegister(v.outcomes)
	app.Tasks = append(app.Tasks, v.runVerifier)
	return nil
}
