// Package watcher keeps the stream of changes equal to the API server: every change in a Kubernetes cluster becomes a
// message on NATS. One replica leads and publishes. All replicas answer queries about the progress of a change.
//
// Package source reads the API server, and secrets limits the Secrets to those that objects name. Package reflector
// keeps the stream, and query answers.
package watcher

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/query"
	"github.com/entail-dev/entail/services/watcher/internal/reflector"
	"github.com/entail-dev/entail/services/watcher/internal/secrets"
	"github.com/entail-dev/entail/services/watcher/internal/source"
	"github.com/entail-dev/entail/services/watcher/internal/trail"
)

// checkInterval is the time between two checks of the stream. It bounds how long a wiped stream stays unnoticed.
const checkInterval = time.Second

// Run runs the watcher until ctx ends or a part of it fails.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", topology.Watcher, err)
	}
	return service.Run(ctx, topology.Watcher, cfg.Config, func(_ context.Context, rt *service.Runtime) (service.App, error) {
		return buildApp(cfg, rt)
	})
}

func buildApp(cfg Config, rt *service.Runtime) (service.App, error) {
	kinds, err := cfg.configuredKinds()
	if err != nil {
		return service.App{}, err
	}
	cluster, err := source.New(rt.Kube, cfg.Cluster)
	if err != nil {
		return service.App{}, fmt.Errorf("client of the API server: %w", err)
	}
	patient := rest.CopyConfig(rt.Kube)
	patient.Timeout = leaseRenewal // Without a timeout a standby could wait for ever.
	leases, err := kubernetes.NewForConfig(patient)
	if err != nil {
		return service.App{}, fmt.Errorf("client of leases: %w", err)
	}
	publisher, rewinds := publish.New(rt.JS), reflector.NewRewoundKinds()
	stream := reflector.Config{
		Publisher: publisher, Cluster: cfg.Cluster, Kinds: append(secrets.SecretKinds(cfg.SecretNamespaces), kinds...), StreamReplicas: cfg.StreamReplicas,
		Workers: cfg.Publishers, TombstoneTTL: cfg.TombstoneTTL, CheckInterval: checkInterval, Resync: cfg.Resync,
		Log: rt.Log, Metrics: reflector.NewMetrics(rt.Metrics), Rewinds: rewinds, Health: &reflector.Health{}, Tracer: rt.Tracer, Propagator: rt.Propagator,
	}
	identity := cmp.Or(cfg.Identity, randomIdentity())
	leader := &election{
		identity: identity, lease: newObservedLease(leases.CoordinationV1(), cfg, identity), unanswered: stream.Health.BusSilence,
		unread: stream.Health.APIServerSilence,
		log:    rt.Log, metrics: newMetrics(rt.Metrics),
	}
	events, err := kube.New(rt.Kube, cfg.Cluster, rt.Name)
	if err != nil {
		return service.App{}, fmt.Errorf("client of Events: %w", err)
	}
	halted := &serviceHalt{leases: leases.CoordinationV1().Leases(cfg.LeaseNamespace), name: cfg.LeaseName, log: rt.Log}
	stream.LeaseTerm = func(ctx context.Context) (uint64, error) { return readTerm(ctx, halted.leases, halted.name) }
	stream.Halt, stream.Event = halted, events.RecordEvent
	letters := trail.New(rt.JS)
	answers := query.New(query.Config{
		Source: cluster, Publisher: publisher, Trail: letters, Cluster: cfg.Cluster, Kinds: kinds, TombstoneTTL: cfg.TombstoneTTL,
		Resume: halted.Resume,
	})
	return service.App{
		Handlers: []rpc.Handler{answers.Handler()},
		Ready: []service.ReadinessCheck{
			{Name: "lease", Err: leader.lease.Err},
			{Name: "versions", Err: rewinds.Err},
			{Name: "cluster", Err: stream.Health.ClusterErr},
			{Name: "publication", Err: stream.Health.BusErr},
			{Name: "barrier", Err: stream.Health.BarrierErr},
		},
		Tasks: []func(context.Context) error{
			func(ctx context.Context) error {
				return leader.runElection(ctx, func(ctx context.Context) error {
					halted.loadFromLease(ctx)
					go halted.keepLeaseInSync(ctx)
					term := stream
					term.Term = leader.lease.currentTerm()
					term.Source = secrets.New(cluster, stream.Kinds, rt.Log) // References from an earlier term do not matter.
					return reflector.Run(ctx, term)
				})
			},
			answers.Run,
			func(ctx context.Context) error {
				return leader.metrics.pollDeadLetterCount(ctx, letters.CountDeadLetters)
			},
		},
	}, nil
}
