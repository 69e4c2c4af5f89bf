package leader_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/internal/topology"
)

// takeover has short bounds, because these tests wait for many takeovers.
var takeover = topology.TakeoverBounds{LeaseLifetime: time.Second, PinTimeout: 2 * time.Second, SettlingTime: 5 * time.Second} //nolint:gochecknoglobals // It never changes.

// testStreams is a real NATS server with all streams.
type testStreams struct {
	t   *testing.T
	url string
	js  jetstream.JetStream
}

func newTestStreams(t *testing.T) *testStreams {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("server does not start")
	}
	b := &testStreams{t: t, url: s.ClientURL()}
	b.js = b.connect()
	if err := topology.EnsureStreams(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *testStreams) connect() jetstream.JetStream {
	b.t.Helper()
	conn, err := nats.Connect(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		b.t.Fatal(err)
	}
	return js
}

// publishLease publishes the lease of a replica that does not run here.
func (b *testStreams) publishLease(holder string) time.Time {
	b.t.Helper()
	sent := time.Now()
	if _, err := b.js.Publish(b.t.Context(), topology.LeaseSubject("test"), []byte(holder)); err != nil {
		b.t.Fatal(err)
	}
	return sent
}

// deliver publishes a message for the leader. JetStream pins a replica only when it delivers a message.
func (b *testStreams) deliver() {
	b.t.Helper()
	if _, err := b.js.Publish(b.t.Context(), topology.ResyncSubject("test"), nil); err != nil {
		b.t.Fatal(err)
	}
}

// repin makes the server pin a replica again, as after a change of the consumer's leader.
func (b *testStreams) repin() {
	b.t.Helper()
	stream, err := b.js.Stream(b.t.Context(), topology.Changes)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := stream.UnpinConsumer(b.t.Context(), "test", topology.PriorityGroup); err != nil {
		b.t.Fatal(err)
	}
}

// leaseHolder returns the content of the newest lease.
func (b *testStreams) leaseHolder() string {
	b.t.Helper()
	stream, err := b.js.Stream(b.t.Context(), topology.Changes)
	if err != nil {
		b.t.Fatal(err)
	}
	msg, err := stream.GetLastMsgForSubject(b.t.Context(), topology.LeaseSubject("test"))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(msg.Data)
}

// boundReplica is a replica that is bound to the durable consumer and does no work.
type boundReplica struct {
	*leader.Elector

	// resign stops the replica.
	resign func()
}

// start starts a replica whose elector uses js.
func (b *testStreams) start(js jetstream.JetStream) boundReplica {
	b.t.Helper()
	service := topology.Service{Name: "test", Kinds: []event.GroupResource{kinds.Stores().GroupResource}}
	e := leader.NewElector(js, service.Name, takeover, slog.New(slog.DiscardHandler))
	durable, err := topology.EnsureConsumer(b.t.Context(), b.js, service, takeover)
	if err != nil {
		b.t.Fatal(err)
	}
	messages, err := durable.Messages(jetstream.PullExpiry(takeover.PullExpiry()), jetstream.PullPriorityGroup(topology.PriorityGroup))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() { e.Run(ctx) })
	running.Go(func() {
		for msg, err := messages.Next(); err == nil; msg, err = messages.Next() {
			if term, started := e.ObservePin(msg); started {
				running.Go(func() { openTerm(ctx, e, term) })
			}
			_ = msg.Ack()
		}
	})
	resign := sync.OnceFunc(func() {
		messages.Stop()
		cancel()
		running.Wait()
		_ = e.Resign(context.WithoutCancel(ctx)) // A test may have closed the connection.
	})
	b.t.Cleanup(resign)
	return boundReplica{e, resign}
}

// openTerm opens a term in the same way as the controller.
func openTerm(ctx context.Context, e *leader.Elector, term uint64) {
	for e.RenewLease(ctx, term) != nil {
		if !backoff.Sleep(ctx, 10*time.Millisecond) || !e.IsCurrentTerm(term) {
			return
		}
	}
	e.AwaitPredecessors(ctx)
	e.OpenTerm(term)
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}
