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

// Observe notes how much every replica has done until now: who does more after that is active.
func (t *Target) Observe(ctx context.Context) { t.handled = handled(ctx, t.System.Services) }

// handled is how many messages each replica has handled that answers, by its name.
func handled(ctx context.Context, replicas []*system.Replica) map[string]float64 {
	counts := map[string]float64{}
	for _, r := range replicas {
		if n, err := r.Handled(ctx); err == nil {
			counts[r.Process.Name] = n
		}
	}
	return counts
}

// busiest is the name of who has done most between two counts; empty if nobody answered the second.
func busiest(before, now map[string]float64) (found string) {
	most := -1.0
	for _, name := range slices.Sorted(maps.Keys(now)) {
		done := now[name] - before[name]
		if done < 0 { // It was started anew.
			done = now[name]
		}
		if done > most {
			found, most = name, done
		}
	}
	return found
}

// killActive kills the replica of each service for which the others stand by, and returns them.
func (t *Target) killActive(ctx context.Context, services []string) []*system.Process {
	var names []string
	for _, service := range services {
		replicas := slices.DeleteFunc(slices.Clone(t.System.Services), func(r *system.Replica) bool { return r.Service.Name != service })
		names = append(names, busiest(t.handled, handled(ctx, replicas)))
	}
	struck := processes(t, names)
	for _, p := range struck {
		p.Kill()
	}
	t.Tell("killed " + strings.Join(names, ", "))
	return struck
}

// reader finds the NATS server by whose death those who read lose most, and those who write least:
// it leads few of the groups that a change goes through, and serves many who follow the stream of
// changes. While nobody can tell, it is the other.
func (t *Target) reader(ctx context.Context, other *system.Process) *system.Process {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	stream, err := t.Bus.JS.Stream(ctx, changes)
	if err != nil {
		return other
	}
	serves, leads := map[string]int{}, map[string]int{leader(stream.CachedInfo().Cluster): 1}
	for c := range stream.ListConsumers(ctx).Info() {
		switch {
		case c.Config.Durable != "":
			leads[leader(c.Cluster)]++
		case c.NumWaiting > 0: // Else whoever made it is gone.
			serves[leader(c.Cluster)]++
		}
	}
	return slices.MinFunc(t.System.Nodes, func(a, b *system.Process) int {
		return cmp.Or(leads[a.Name]-leads[b.Name], serves[b.Name]-serves[a.Name])
	})
}

// leader names the server of a stream or consumer that others write or read it through.
func leader(c *jetstream.ClusterInfo) string {
	if c == nil {
		return ""
	}
	return c.Leader
}
