//go:build integration

package devserver

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/entail-dev/entail/services/internal/natsauth"
	"github.com/entail-dev/entail/services/internal/topology"
)

// serverStarter starts a server with its state in dir.
type serverStarter func(ctx context.Context, dir string, port int) (*ServerProcess, error)

func serverStarters() map[string]serverStarter {
	return map[string]serverStarter{
		"NATS": func(ctx context.Context, dir string, port int) (*ServerProcess, error) {
			return StartNATS(ctx, NATSConfig{Dir: dir, Port: port, Password: "test"})
		},
		"OpenFGA": func(ctx context.Context, dir string, port int) (*ServerProcess, error) {
			return StartOpenFGA(ctx, OpenFGAConfig{File: filepath.Join(dir, "openfga.db"), Port: port})
		},
	}
}

func busOf(t *testing.T, s *ServerProcess, user string) jetstream.JetStream {
	t.Helper()
	cfg := NATSConfig{Port: s.Port(), Password: "test"}
	conn, err := nats.Connect(cfg.URL(user), nats.CustomInboxPrefix(topology.InboxPrefix(user)))
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

func TestNATSKeepsStreamsAndPortAcrossRestart(t *testing.T) {
	start, dir := serverStarters()["NATS"], t.TempDir()
	first, err := start(t.Context(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	js := busOf(t, first, natsauth.Admin)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "kept", []byte("message")); err != nil {
		t.Fatal(err)
	}
	stop(t, first)
	second, err := start(t.Context(), dir, first.Port())
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, second)
	stream, err := busOf(t, second, natsauth.Admin).Stream(t.Context(), "KEPT")
	if err != nil {
		t.Fatal(err)
	}
	if message, err := stream.GetMsg(t.Context(), 1); err != nil || string(message.Data) != "message" {
		t.Errorf("got %v, %v; want the message", message, err)
	}
}

func TestNATSEnforcesServiceRights(t *testing.T) {
	s, err := serverStarters()["NATS"](t.Context(), t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, s)
	if got := busOf(t, s, natsauth.Admin).Conn().MaxPayload(); got != MaxPayload {
		t.Errorf("the limit is %d bytes; want %d", got, MaxPayload)
	}
	if err := topology.EnsureStreams(t.Context(), busOf(t, s, topology.Watcher), 1); err != nil {
		t.Errorf("the watcher makes streams: %v", err)
	}
	js := busOf(t, s, topology.StoreSync)
	if _, err := js.Stream(t.Context(), topology.Changes); err != nil {
		t.Errorf("store-sync reads a stream: %v", err)
	}
	denied := make(chan error, 1)
	js.Conn().SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err })
	if err := js.Conn().Publish("$JS.API.STREAM.DELETE."+topology.Changes, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-denied; !strings.Contains(err.Error(), "Permissions Violation") {
		t.Errorf("store-sync deletes a stream: %v; want a violation", err)
	}
	wrong := NATSConfig{Port: s.Port(), Password: "wrong"}
	if _, err := nats.Connect(wrong.URL(natsauth.Admin)); err == nil {
		t.Error("a wrong password connects")
	}
}

func TestOpenFGAKeepsStoresAndPortAcrossRestart(t *testing.T) {
	start, dir := serverStarters()["OpenFGA"], filepath.Join(t.TempDir(), "made")
	first, err := start(t.Context(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(LoopbackAddress(first.Port()), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := openfgav1.NewOpenFGAServiceClient(conn)
	made, err := client.CreateStore(t.Context(), &openfgav1.CreateStoreRequest{Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	stop(t, first)
	second, err := start(t.Context(), dir, first.Port())
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, second)
	got, err := client.GetStore(t.Context(), &openfgav1.GetStoreRequest{StoreId: made.GetId()}, grpc.WaitForReady(true))
	if err != nil || got.GetName() != "kept" {
		t.Errorf("got %v, %v; want the store", got, err)
	}
}

func BenchmarkStart(b *testing.B) {
	for name, start := range serverStarters() {
		for _, again := range []bool{false, true} {
			b.Run(map[bool]string{false: "new ", true: "restarted "}[again]+name, func(b *testing.B) {
				dir := b.TempDir()
				for b.Loop() {
					if !again {
						dir = b.TempDir()
					}
					s, err := start(b.Context(), dir, 0)
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					stop(b, s)
					b.StartTimer()
				}
			})
		}
		b.Run("stopping "+name, func(b *testing.B) {
			dir := b.TempDir()
			for b.Loop() {
				b.StopTimer()
				s, err := start(b.Context(), dir, 0)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				stop(b, s)
			}
		})
	}
}
