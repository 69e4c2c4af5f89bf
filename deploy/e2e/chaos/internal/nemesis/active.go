package nemesis

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

// RecordHandledCounts stores the number of messages that each replica has handled so far. The replica that handles most after that
// is the active one.
func (t *FaultTarget) RecordHandledCounts(ctx context.Context) {
	t.handled = handledMessages(ctx, t.System.Services)
}

// handledMessages returns the number of handled messages of each replica that answers, by its name.
func handledMessages(ctx context.Context, replicas []*system.Replica) map[string]float64 {
	counts := map[string]float64{}
	for _, r := range replicas {
		if n, err := r.HandledMessages(ctx); err == nil {
			counts[r.Process.Name] = n
		}
	}
	return counts
}

// busiestReplica returns the replica that handled most between two counts, or an empty name if now is empty.
func busiestReplica(before, now map[string]float64) (found string) {
	most := -1.0
	for _, name := range slices.Sorted(maps.Keys(now)) {
		done := now[name] - before[name]
		if done < 0 { // It was restarted, so its counter began at 0.
			done = now[name]
		}
		if done > most {
			found, most = name, done
		}
	}
	return found
}

// killActiveReplicas kills the active replica of each service, and returns the killed processes.
func (t *FaultTarget) killActiveReplicas(ctx context.Context, services []string) []*system.Process {
	var names []string
	for _, service := range services {
		replicas := slices.DeleteFunc(slices.Clone(t.System.Services), func(r *system.Replica) bool { return r.Service.Name != service })
		names = append(names, busiestReplica(t.handled, handledMessages(ctx, replicas)))
	}
	struck := processesNamed(t, names)
	for _, p := range struck {
		p.Kill()
	}
	t.Tell("killed " + strings.Join(names, ", "))
	return struck
}

// leastLeadingNode returns the NATS server whose death affects readers most and writers least. It leads the fewest of the groups
// that a change passes, and then serves the most consumers of the stream of changes. If NATS does not answer, it
// returns other.
func (t *FaultTarget) leastLeadingNode(ctx context.Context, other *system.Process) *system.Process {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	stream, err := t.Bus.JS.Stream(ctx, changes)
	if err != nil {
		return other
	}
	serves, leads := map[string]int{}, map[string]int{leaderName(stream.CachedInfo().Cluster): 1}
	for c := range stream.ListConsumers(ctx).Info() {
		switch {
		case c.Config.Durable != "":
			leads[leaderName(c.Cluster)]++
		case c.NumWaiting > 0: // Otherwise its client is gone.
			serves[leaderName(c.Cluster)]++
		}
	}
	return slices.MinFunc(t.System.Nodes, func(a, b *system.Process) int {
		return cmp.Or(leads[a.Name]-leads[b.Name], serves[b.Name]-serves[a.Name])
	})
}

// leaderName returns the server that leads a stream or consumer.
func leaderName(c *jetstream.ClusterInfo) string {
	if c == nil {
		return ""
	}
	return c.Leader
}
