package informer

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/topology"
)

// A stream that was restored from a backup may give a new end mark the very sequence up to which the informer has read.
func TestAwaitCaughtUpRequiresEndMarkAfterPosition(t *testing.T) {
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("NATS did not start")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	for lost := range uint64(3) {
		v := New(Config{JS: js, Service: "test", Log: slog.New(slog.DiscardHandler)})
		stream, err := v.readStreamInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v.streamID, v.position = topology.StreamID(stream), stream.State.LastSeq+1+lost
		if err := v.AwaitCaughtUp(t.Context()); !errors.Is(err, errCutShort) {
			t.Errorf("%d messages more than the mark are lost: got %v, want %v", lost, err, errCutShort)
		}
	}
}
