//go:build compose

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// replicasAreReplaced kills the leader of NATS and one replica of each service at once, then the other replicas. Each
// time, the remaining replicas must apply a change. One of the two times, the leader of each service is killed.
func replicasAreReplaced(t *testing.T, m *machine) {
	t.Helper()
	stores := m.objects(t).Resource(resource("stores"))
	applySamples(t, m, "store.yaml")
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })

	js, err := jetstream.New(onTheBus(t, "admin", make(chan error, 1)))
	if err != nil {
		t.Fatal(err)
	}
	lost := []string{"watcher", "store-sync", "tuple-sync"}
	eventually(t, soon, "three servers keep the changes", func(ctx context.Context) error {
		stream, err := js.Stream(ctx, "ENTAIL_CHANGES")
		if err != nil {
			return err
		}
		cluster := stream.CachedInfo().Cluster
		if cluster == nil || len(cluster.Replicas) != 2 || cluster.Leader == "" {
			return fmt.Errorf("they are with %+v", cluster)
		}
		lost = append(lost[:3], cluster.Leader)
		for _, replica := range cluster.Replicas {
			if !replica.Current {
				err = errors.Join(err, fmt.Errorf("%s is behind", replica.Name))
			}
		}
		return err
	})
	compose(t, append([]string{"kill"}, lost...)...)
	dropTuplesOf(t, stores, "user:beth")
	eventually(t, soon, "the other replicas have applied the change", func(ctx context.Context) error { return ready(ctx, stores, "demo") })

	start(t)
	compose(t, "kill", "watcher-standby", "store-sync-standby", "tuple-sync-standby")
	dropTuplesOf(t, stores, "user:anne")
	eventually(t, soon, "the first replicas have applied the change", func(ctx context.Context) error { return ready(ctx, stores, "demo") })
}
