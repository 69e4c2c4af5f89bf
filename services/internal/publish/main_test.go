package publish

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bus is a NATS server for one test with all streams.
func bus(t testing.TB, maxPayload int32) jetstream.JetStream {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true,
		MaxPayload: cmp.Or(maxPayload, server.MAX_PAYLOAD_SIZE),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("NATS did not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	return js
}

func key(name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: name}
}

// state returns a state of the store name at one resourceVersion.
func state(name string, version int) event.Change {
	return event.Change{
		Key: key(name), Version: "v1alpha1", Kind: "Store", UID: "uid-" + name, Epoch: "epoch",
		ResourceVersion: fmt.Sprint(version), ObservedAt: time.Unix(1, 0).UTC(),
		Object: fmt.Appendf(nil, `{"metadata":{"name":%q,"resourceVersion":"%d"}}`, name, version),
	}
}

func deletedState(name string, version int) event.Change {
	c := state(name, version)
	c.Deleted = true
	return c
}

func stream(t testing.TB, js jetstream.JetStream) jetstream.Stream {
	t.Helper()
	s, err := js.Stream(t.Context(), topology.Changes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPublish(t testing.TB, p *Publisher, c event.Change, expected uint64, opts PublicationOptions) Ack {
	t.Helper()
	ack, err := p.PublishChange(t.Context(), c, expected, opts)
	if err != nil {
		t.Fatal(err)
	}
	return ack
}

func mustLast(t testing.TB, p *Publisher, name string) StoredMessage {
	t.Helper()
	stored, err := p.LastChange(t.Context(), key(name))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}
