package informer_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// soon bounds each wait for an expected state.
	soon = 60 * time.Second
	// reconnectWait is short, so that tests with restarts take less time.
	reconnectWait = 20 * time.Millisecond
)

// testStreams is a NATS server for one test with all streams. Its methods publish like the watcher.
type testStreams struct {
	t  *testing.T
	js jetstream.JetStream
	*publish.Publisher
	barriers *testenv.BarrierWriter
	// others writes the barriers of another cluster; nil if the other cluster has no watcher.
	others *testenv.BarrierWriter
}

func newTestStreams(t *testing.T) *testStreams {
	t.Helper()
	return newTestStreamsOf(t, serve(t, t.TempDir()))
}

// serve starts a server that stores its streams in a directory.
func serve(t *testing.T, dir string) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: dir, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(soon) {
		t.Fatal("NATS did not start")
	}
	return s
}

func newTestStreamsOf(t *testing.T, s nats.InProcessConnProvider) *testStreams {
	t.Helper()
	conn, err := nats.Connect("", nats.InProcessServer(s), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	publisher := publish.New(js)
	b := &testStreams{t: t, js: js, Publisher: publisher, barriers: testenv.NewBarrierWriter(publisher, "c")}
	b.must(topology.EnsureStreams(t.Context(), js, 1))
	return b
}

func (b *testStreams) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// beat writes a barrier of the cluster "c", with the given delay of the stream.
func (b *testStreams) beat(behind time.Duration) {
	b.t.Helper()
	b.must(b.barriers.Write(b.t.Context(), behind))
}

// put publishes states and returns the sequence of the last one.
func (b *testStreams) put(changes ...event.Change) uint64 {
	b.t.Helper()
	var at uint64
	for _, c := range changes {
		ack, err := b.PublishChange(b.t.Context(), c, 0, publish.PublicationOptions{Replay: true})
		b.must(err)
		at = ack.Sequence
	}
	return at
}

// raw publishes a message that the watcher would not publish.
func (b *testStreams) raw(subject, data string) {
	b.t.Helper()
	_, err := b.js.Publish(b.t.Context(), subject, []byte(data))
	b.must(err)
}

// mark publishes a snapshot marker: up to a sequence, the stream holds count objects of a kind.
func (b *testStreams) mark(kind kinds.Kind, count int, upTo uint64, edit ...func(*eventv1.SnapshotMarker)) {
	b.t.Helper()
	streamID, err := b.StreamID(b.t.Context())
	b.must(err)
	m := &eventv1.SnapshotMarker{
		Cluster: "c", Group: kind.Group, Resource: kind.Resource, Epoch: "e", Count: int64(count),
		Stream: streamID, LastSequence: upTo, Served: true,
	}
	for _, f := range edit {
		f(m)
	}
	b.must(b.PublishMarker(b.t.Context(), m))
}

// replace deletes the stream of changes and creates it again.
func (b *testStreams) replace() {
	b.t.Helper()
	b.must(b.js.DeleteStream(b.t.Context(), topology.Changes))
	b.must(topology.EnsureStreams(b.t.Context(), b.js, 1))
}

// followingInformer is an informer that follows the bus until the test ends.
type followingInformer struct {
	*informer.Informer
	bus     *testStreams
	stores  *informer.Lister[object]
	reloads *atomic.Int32
	derived derivedContent
}

func (b *testStreams) feed(edit ...func(*informer.Config)) *followingInformer {
	b.t.Helper()
	return b.feedOf(nil, edit...)
}

// feedOf does the same as feed for an informer with further kinds.
func (b *testStreams) feedOf(others []kinds.Kind, edit ...func(*informer.Config)) *followingInformer {
	b.t.Helper()
	cfg := informer.Config{JS: b.js, Service: "test", Log: slog.New(slog.DiscardHandler)}
	for _, f := range edit {
		f(&cfg)
	}
	v := informer.New(cfg)
	f := &followingInformer{Informer: v, bus: b, stores: informer.RegisterLister(v, kinds.Stores(), map[string]func(*object) []string{"tag": func(o *object) []string { return o.Tags }}), reloads: &atomic.Int32{}}
	for _, kind := range others {
		informer.RegisterLister[object](v, kind, nil)
	}
	v.OnReload(func() { f.reloads.Add(1) })
	f.derived.follow(v, f.stores)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("the view ended with %v", err)
		}
	})
	return f
}

// await writes barriers until the informer is complete and holds these Stores.
func (f *followingInformer) await(t *testing.T, want string) {
	t.Helper()
	f.eventually(t, func() error {
		if err := f.complete(); err != nil {
			return err
		}
		if got := names(f.stores.All()); got != want {
			return errors.New("held are " + got)
		}
		return nil
	})
}

// complete returns nil if the informer is complete. Otherwise it writes a barrier.
func (f *followingInformer) complete() error {
	err := f.IncompleteErr()
	if err != nil {
		_ = f.bus.barriers.Write(f.bus.t.Context(), 0) // NATS may be down. The next attempt writes another one.
	}
	if err != nil && f.bus.others != nil {
		_ = f.bus.others.Write(f.bus.t.Context(), 0)
	}
	return err
}

// incomplete waits until the informer holds an object, and requires that the informer is incomplete then.
func (f *followingInformer) incomplete(t *testing.T, name string) {
	t.Helper()
	f.eventually(t, func() error {
		if _, ok := f.stores.Get(key(name)); !ok {
			return errors.New("there is no " + name)
		}
		return nil
	})
	if err := f.IncompleteErr(); !errors.Is(err, informer.ErrIncomplete) {
		t.Errorf("it says %v", err)
	}
}

func (f *followingInformer) eventually(t *testing.T, check func() error) {
	t.Helper()
	end := time.After(soon)
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-end:
			t.Fatalf("not within %s: %v", soon, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
