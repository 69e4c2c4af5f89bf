package topology_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/topology"
)

// cluster starts a cluster of three NATS servers and returns a client.
func cluster(t *testing.T) jetstream.JetStream {
	t.Helper()
	const nodes = 3
	var routes []*url.URL
	var ports []int
	for range nodes {
		port, err := devserver.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		routes = append(routes, &url.URL{Scheme: "nats", Host: devserver.LoopbackAddress(port)})
		ports = append(ports, port)
	}
	var last *server.Server
	for i := range nodes {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[i]}, Routes: routes,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		last = s
	}
	if !last.ReadyForConnections(time.Minute) {
		t.Fatal("server does not start")
	}
	conn, err := nats.Connect(last.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestRepairStreamRaisesReplicasOnly(t *testing.T) {
	t.Parallel()
	js := cluster(t)
	for _, test := range []struct{ asked, want int }{{1, 1}, {3, 3}, {1, 3}} {
		deadline := time.Now().Add(time.Minute)
		for err := topology.EnsureStreams(t.Context(), js, test.asked); err != nil; err = topology.EnsureStreams(t.Context(), js, test.asked) {
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
		if got := configOf(t, js, topology.Changes).Replicas; got != test.want {
			t.Errorf("asked for %d copies: %d, want %d", test.asked, got, test.want)
		}
	}
	differences, err := topology.CompareStreams(t.Context(), js, 1)
	if err != nil || len(differences) != len(topology.StreamNames()) || differences[0].Replicas != 3 || differences[0].NeedsRepair() {
		t.Errorf("differences %+v, %v; want to be told of all copies", differences, err)
	}
}
