package view_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/types/known/durationpb"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
)

// stalled is a bus of which somebody reads nothing of what watchers say of themselves while gate is locked, as a process
// that is stopped: it comes all the same, and waits.
type stalled struct {
	jetstream.JetStream

	gate *sync.Mutex
}

type stalledConsumer struct {
	jetstream.Consumer

	gate *sync.Mutex
}

type stalledMessages struct {
	jetstream.MessagesContext

	gate *sync.Mutex
}

func (s stalled) OrderedConsumer(ctx context.Context, stream string, cfg jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	c, err := s.JetStream.OrderedConsumer(ctx, stream, cfg)
	if stream != topology.Sync {
		return c, err
	}
	return stalledConsumer{c, s.gate}, err
}

func (c stalledConsumer) Messages(opts ...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	m, err := c.Consumer.Messages(opts...)
	return stalledMessages{m, c.gate}, err
}

func (m stalledMessages) Next(opts ...jetstream.NextOpt) (jetstream.Msg, error) {
	msg, err := m.MessagesContext.Next(opts...)
	m.gate.Lock()
	defer m.gate.Unlock()
	return msg, err
}

// Whoever was held still has heartbeats before them of a watcher that may have died long ago.
func TestAHeartbeatThatIsReadLateIsAsOldAsItIs(t *testing.T) {
	b := newBus(t)
	beat := func(behind time.Duration) {
		t.Helper()
		b.must(b.Heartbeat(t.Context(), &eventv1.Heartbeat{Cluster: "c", Behind: durationpb.New(behind)}))
	}
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	js := stalled{b.js, &sync.Mutex{}}
	f := b.feed(func(c *view.Config) { c.JS = js })
	f.await(t, "a ")
	f.eventually(t, func() error {
		beat(0)
		if f.Age() > time.Second {
			return errors.New("no heartbeat was read")
		}
		return nil
	})
	js.gate.Lock()
	const told = time.Hour
	beat(told)
	written := time.Now()
	f.eventually(t, func() error {
		if f.Age() < 4*time.Second {
			return errors.New("there were heartbeats a moment ago")
		}
		return nil
	})
	late := time.Since(written)
	js.gate.Unlock()
	f.eventually(t, func() error {
		switch over := f.Age() - told; {
		case over < 0:
			return errors.New("it is not read")
		case over < late:
			t.Errorf("a heartbeat of %s ago is taken for one of %s ago", late, over)
		}
		return nil
	})
}

// recovering is a server that is restored from a backup at times.
type recovering struct{ atomic.Pointer[server.Server] }

func (r *recovering) InProcessConn() (net.Conn, error) { return r.Load().InProcessConn() }

// next ends the server, and starts one on a copy of a folder.
func (r *recovering) next(t *testing.T, from string) (dir string) {
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

// A bus that is restored from a backup has other changes under the numbers of those that it lost. Who has read these would never hear
// of the others.
func TestAStreamThatHasLostItsEndIsReadAnew(t *testing.T) {
	var server recovering
	first := server.next(t, t.TempDir())
	b := newBusOf(t, &server)
	b.mark(kinds.Stores(), 2, b.put(change("a", 1), change("b", 2)))
	f := b.feed()
	f.await(t, "a b ")
	server.next(t, first)
	b.reconnected()
	f.await(t, "a b ")
	for version := range 1000 { // As many as nobody makes again within the seconds of this test.
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
		return f.Complete()
	})
}

// reconnected waits until the bus answers again.
func (b *bus) reconnected() {
	b.t.Helper()
	for end := time.Now().Add(soon); ; {
		_, err := b.Incarnation(b.t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			b.t.Fatal(err)
		}
	}
}
