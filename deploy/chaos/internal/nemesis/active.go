package nemesis

import (
	"context"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/deploy/chaos/internal/system"
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
	return struck
}

// idle finds the NATS server that leads fewest of the groups which a change goes through: the
// stream of changes and its consumers. While nobody can tell, it is the other.
func (t *Target) idle(ctx context.Context, other *system.Process) *system.Process {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	stream, err := t.Bus.JS.Stream(ctx, changes)
	if err != nil {
		return other
	}
	leads := map[string]int{leader(stream.CachedInfo().Cluster): 1}
	for _, durable := range t.Bus.Durables {
		if consumer, err := stream.Consumer(ctx, durable); err == nil {
			leads[leader(consumer.CachedInfo().Cluster)]++
		}
	}
	return slices.MinFunc(t.System.Nodes, func(a, b *system.Process) int { return leads[a.Name] - leads[b.Name] })
}

func leader(c *jetstream.ClusterInfo) string {
	if c == nil {
		return ""
	}
	return c.Leader
}
