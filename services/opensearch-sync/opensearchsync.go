// Package opensearchsync keeps users, roles, tenants, action groups and role mappings of OpenSearch clusters in step
// with the objects that declare them. Entities of other writers stay as they are.
//
// Package plan makes the decisions. This package gathers its input, executes the plan, writes statuses and answers
// requests. Before a write, a record of it is in the status of the object. Only what a record claims is changed or
// removed, unless an object adopts more.
package opensearchsync

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/verify"
)

// Run runs opensearch-sync until ctx ends or a part of it fails.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", topology.OpensearchSync, err)
	}
	return service.Run(ctx, topology.OpensearchSync, cfg.Config.Config, func(ctx context.Context, rt *service.Runtime) (service.App, error) {
		return buildApp(ctx, cfg, rt)
	})
}

func buildApp(ctx context.Context, cfg Config, rt *service.Runtime) (service.App, error) {
	parts, err := setup.BuildParts(rt, cfg.Config, setup.RequiredBackends{OneCluster: true})
	if err != nil {
		return service.App{}, err
	}
	secrets, state := secretValueReader{parts.Kube}, newState(parts.View, cfg.Legacy)
	rivals, contests := newForeignWriterDetector(time.Now, state.isLiveUID), newUncertainWrites(time.Now, cfg.Takeover.SettlingTime, state.isLiveUID)
	schemas := newForeignSchemas(rt.Metrics, rt.Log)
	verifier := verify.New(parts.View, parts.Kube, cfg.Cluster, rt.Log, rt.Metrics)
	metrics := newWriteMetrics(rt.Metrics)
	r := &reconciler{
		drift: cfg.DriftInterval, drifts: &driftReporter{metrics: metrics, notes: parts.Status, log: rt.Log},
		lanes: newLanes(cfg.Workers),
		state: state, secrets: secrets, verifier: verifier, rivals: rivals, contests: contests, poll: cfg.SecretInterval, log: rt.Log,
		connections: &connectionPool{
			secrets: secrets, local: cfg.Local, forbidden: apiServerAddresses(ctx, rt.Kube.Host), guard: parts.Engine.Elector.FenceTransport,
			needed: state.isClusterNeeded, log: rt.Log, open: map[string]*clusterConnection{},
		},
		applier: &planApplier{metrics: metrics, contests: contests, batchTime: cfg.BatchTime},
		statuses: &statusReporter{
			writer: parts.Status, kube: parts.Kube, clear: state.markCleared, rivals: rivals, schemas: schemas, recorded: contests.addFirstRecord,
			elsewhere: func(uid string) bool { return state.isNameOwner(uid, false) },
		},
	}
	r.reachability = &reachabilityReporter{writer: parts.Status, log: rt.Log}
	answers := &queryServer{
		state: r.state, connections: r.connections, verifier: verifier, cluster: cfg.Cluster, complete: parts.View.IncompleteErr, large: make(chan struct{}, 1),
	}
	app := setup.NewApp(parts, r, answers.rpcHandler())
	app.Ready = append(app.Ready, service.ReadinessCheck{Name: "definitions", Err: schemas.foreignSchemaError})
	end := app.Close
	app.Close = func() error {
		r.connections.closeAll()
		return end()
	}
	return app, nil
}

// apiServerAddresses returns the addresses of the API server. An OpenSearchCluster must not make opensearch-sync call them.
func apiServerAddresses(ctx context.Context, host string) []string {
	var all []string
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		addresses, _ := net.DefaultResolver.LookupHost(ctx, u.Hostname()) // A name without an address cannot be called.
		for _, address := range append(addresses, u.Hostname()) {
			port := u.Port()
			if port == "" {
				port = "443"
			}
			all = append(all, net.JoinHostPort(address, port))
		}
	}
	if service := os.Getenv("KUBERNETES_SERVICE_HOST"); service != "" {
		all = append(all, service)
	}
	return all
}
