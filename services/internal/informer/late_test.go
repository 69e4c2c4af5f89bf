package informer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// throttledStream is a bus on which one stream is read only as far as pass allows, as by a process that was stopped.
// The messages arrive and wait.
type throttledStream struct {
	jetstream.JetStream

	stream string
	pass   func()
}

type throttledConsumer struct {
	jetstream.Consumer

	pass func()
}

type throttledMessages struct {
	jetstream.MessagesContext

	pass func()
}

func (s throttledStream) OrderedConsumer(ctx context.Context, stream string, cfg jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	c, err := s.JetStream.OrderedConsumer(ctx, stream, cfg)
	if stream != s.stream {
		return c, err
	}
	return throttledConsumer{c, s.pass}, err
}

func (c throttledConsumer) Messages(opts ...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	m, err := c.Consumer.Messages(opts...)
	return throttledMessages{m, c.pass}, err
}

func (m throttledMessages) Next(opts ...jetstream.NextOpt) (jetstream.Msg, error) {
	msg, err := m.MessagesContext.Next(opts...)
	if err == nil {
		m.pass()
	}
	return msg, err
}

// A process that was paused reads barriers of a watcher that may have died long ago.
func TestStalenessCountsDelayOfBarrier(t *testing.T) {
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	var gate sync.Mutex
	f := b.feed(func(c *informer.Config) {
		c.JS = throttledStream{b.js, topology.Changes, func() { gate.Lock(); defer gate.Unlock() }}
	})
	f.await(t, "a ")
	f.eventually(t, func() error {
		b.beat(0)
		if f.Staleness() > time.Second {
			return errors.New("no barrier was read")
		}
		return nil
	})
	gate.Lock()
	release := sync.OnceFunc(gate.Unlock)
	t.Cleanup(release)
	const told = time.Hour
	b.beat(told)
	written := time.Now()
	f.eventually(t, func() error {
		if f.Staleness() < 4*time.Second {
			return errors.New("there were barriers a moment ago")
		}
		return nil
	})
	late := time.Since(written)
	release()
	f.eventually(t, func() error {
		switch over := f.Staleness() - told; {
		case over < 0:
			return errors.New("it is not read")
		case over < late:
			t.Errorf("a barrier of %s ago is taken for one of %s ago", late, over)
		}
		return nil
	})
}

// Only after the last marker does the informer know all clusters that have a watcher.
func TestInformerIsIncompleteUntilAllMarkersAreRead(t *testing.T) {
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	b.mark(kinds.Stores(), 0, 0, func(m *eventv1.SnapshotMarker) { m.Cluster = "other" })
	b.must(testenv.NewBarrierWriter(b.Publisher, "other").Write(t.Context(), 0))
	markers := make(chan struct{}, 1)
	f := b.feed(func(c *informer.Config) { c.JS = throttledStream{b.js, topology.Sync, func() { <-markers }} })
	release := sync.OnceFunc(func() { close(markers) })
	t.Cleanup(release)
	markers <- struct{}{}
	f.incomplete(t, "a")
	for range 200 {
		b.beat(0)
		if f.IncompleteErr() == nil {
			t.Fatal("it is complete, and has not heard of the other cluster")
		}
		<-time.After(5 * time.Millisecond)
	}
	release()
	f.eventually(t, func() error {
		if err := f.complete(); err == nil || !strings.Contains(err.Error(), `cluster "other"`) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// restoredServer is a server that a test can restore from a backup.
type restoredServer struct{ atomic.Pointer[server.Server] }

func (r *restoredServer) InProcessConn() (net.Conn, error) { return r.Load().InProcessConn() }

// next stops the server and starts another one with a copy of a directory.
func (r *restoredServer) next(t *testing.T, from string) (dir string) {
	t.Helper()
	if s := r.Load(); s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	r.Store(serve(t, dir))
	return dir
}

// After a restore from a backup, new messages get the sequences of the messages that were lost. A reader that has read
// the lost messages would not notice the new ones.
func TestInformerReloadsStreamThatLostItsEnd(t *testing.T) {
	var server restoredServer
	first := server.next(t, t.TempDir())
	b := newTestStreamsOf(t, &server)
	b.mark(kinds.Stores(), 2, b.put(change("a", 1), change("b", 2)))
	f := b.feed()
	f.await(t, "a b ")
	server.next(t, first)
	b.reconnected()
	f.await(t, "a b ")
	for version := range 1000 { // More than other writers publish during this test.
		b.put(change("c", 10+version))
	}
	f.await(t, "a b c ")
	server.next(t, first)
	b.reconnected()
	b.put(change("a", 2000, func(c *event.Change) { c.Deleted = true }))
	f.eventually(t, func() error {
		if _, there := f.stores.Get(key("a")); there {
			return errors.New("it has not heard that a is gone")
		}
		return f.complete()
	})
}

func TestInformerIsIncompleteAfterLostConnectionUntilBarrier(t *testing.T) {
	var server restoredServer
	dir := server.next(t, t.TempDir())
	b := newTestStreamsOf(t, &server)
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	f := b.feed()
	f.await(t, "a ")
	server.next(t, dir) // Nothing was lost.
	b.reconnected()
	f.eventually(t, func() error {
		if err := f.IncompleteErr(); err == nil || !strings.Contains(err.Error(), "no barrier of cluster") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	f.await(t, "a ")
}

func TestInformerReloadsAfterUnlinkedBarrier(t *testing.T) {
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	f := b.feed()
	f.await(t, "a ")
	for number := range uint64(20) {
		b.beat(0)
		if f.reloads.Load() > 0 {
			t.Fatalf("it loads again after barrier %d that names all others", number)
		}
	}
	data, err := proto.Marshal(&eventv1.Barrier{Cluster: "c", Run: "another", Number: 1})
	b.must(err)
	b.raw(topology.BarrierSubject("c"), string(data))
	f.eventually(t, func() error {
		if f.reloads.Load() == 0 {
			return errors.New("it goes on")
		}
		return nil
	})
	if err := f.IncompleteErr(); !errors.Is(err, informer.ErrIncomplete) {
		t.Errorf("got %v after the load, want it incomplete", err)
	}
	f.await(t, "a ")
}

// reconnected waits until the server answers again.
func (b *testStreams) reconnected() {
	b.t.Helper()
	for end := time.Now().Add(soon); ; {
		_, err := b.StreamID(b.t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			b.t.Fatal(err)
		}
	}
}

// While the stream is loaded again, services must use neither the previous content nor a part of the new content.
func TestInformerIsIncompleteDuringReload(t *testing.T) {
	b := newTestStreams(t)
	at := b.put(change("a", 1))
	b.mark(kinds.Stores(), 1, at)
	// Its sequence is larger than that in the marker.
	large := b.put(change("b", 2, func(c *event.Change) { c.Omitted, c.Object = true, nil }))
	var again atomic.Bool
	read := make(chan struct{})
	f := b.feed(func(c *informer.Config) {
		c.FetchLargeObject = func(ctx context.Context, _ event.Key) ([]byte, error) {
			if again.Load() {
				return []byte(`{}`), wait(ctx, read)
			}
			return []byte(`{}`), nil
		}
	})
	f.await(t, "a b ")
	f.eventually(t, func() error {
		b.beat(0)
		if f.Staleness() > soon {
			return errors.New("no barrier was read")
		}
		return nil
	})
	again.Store(true)
	b.mark(kinds.Stores(), 7, large)
	f.eventually(t, func() error {
		if f.IncompleteErr() == nil {
			return errors.New("the number is wrong, and it does not read again")
		}
		return nil
	})
	b.mark(kinds.Stores(), 1, at)
	for range 200 {
		if age := f.Staleness(); f.IncompleteErr() == nil || age < math.MaxInt64 {
			t.Fatalf("it has not read b again, and is complete, or %s old", age)
		}
		<-time.After(5 * time.Millisecond)
	}
	b.mark(kinds.Stores(), 2, large)
	close(read)
	f.await(t, "a b ")
}

// A server may feed an informer from a stream that was replaced, without an error.
func TestCheckCurrentDetectsReplacedStream(t *testing.T) {
	b := newTestStreams(t)
	at := b.put(change("a", 1))
	b.mark(kinds.Stores(), 1, at)
	js := b.lagging()
	b.reaches(at)
	f := b.feed(func(c *informer.Config) { c.JS = js })
	f.eventually(t, func() error {
		stream, err := b.js.Stream(t.Context(), topology.Changes)
		b.must(err)
		b.reaches(stream.CachedInfo().State.LastSeq)
		return f.complete()
	})
	b.replace()
	f.eventually(t, func() error {
		if f.IncompleteErr() == nil {
			return errors.New("it holds a, which no stream tells of")
		}
		return nil
	})
}
