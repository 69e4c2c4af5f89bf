package reflector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// TestMain ignores the goroutines that a NATS server leaves behind if it stops while it creates a stream.
func TestMain(m *testing.M) {
	testenv.Main(m,
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"),
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"))
}

// testNATS is a real NATS server that can be stopped and started again.
type testNATS struct {
	// published counts the changes that were published, terms the runs of a reflector.
	published, terms atomic.Uint64
	// events counts Events about forged messages.
	events atomic.Uint64

	t    testing.TB
	dir  string
	port int
	// room bounds the storage of the next server that starts. Zero means no bound.
	room   int64
	server *server.Server
	js     jetstream.JetStream
	p      *publish.Publisher
}

func newTestNATS(t testing.TB) *testNATS {
	t.Helper()
	port, err := devserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b := &testNATS{t: t, dir: t.TempDir(), port: port}
	b.start()
	t.Cleanup(b.stop)
	nc, err := nats.Connect(b.server.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if b.js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	if err := topology.EnsureStreams(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Subscribe(">", b.counter()); err != nil {
		t.Fatal(err)
	}
	b.p = publish.New(b.js)
	return b
}

// counter returns a handler of all messages. It counts the changes that the stream accepts.
func (b *testNATS) counter() nats.MsgHandler {
	changes := map[string]bool{} // By the subject of their acknowledgement.
	return func(m *nats.Msg) {
		switch {
		case strings.HasPrefix(m.Subject, "entail.changes."):
			changes[m.Reply] = true
		case changes[m.Subject] && !bytes.Contains(m.Data, []byte(`"error"`)):
			b.published.Add(1)
		}
	}
}

func (b *testNATS) start() {
	b.t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: b.port, JetStream: true, StoreDir: b.dir, JetStreamMaxStore: b.room, NoSigs: true})
	if err != nil {
		b.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		b.t.Fatal("NATS did not start")
	}
	b.server = s
	if b.js != nil {
		eventually(b.t, func() error { return b.js.Conn().FlushTimeout(time.Second) })
	}
}

func (b *testNATS) stop() { b.server.Shutdown(); b.server.WaitForShutdown() }

func (b *testNATS) stream(name string) jetstream.Stream {
	b.t.Helper()
	s, err := b.js.Stream(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *testNATS) marker() (*eventv1.SnapshotMarker, error) {
	return b.p.LastMarker(b.t.Context(), "local", kinds.Stores().GroupResource)
}

// config returns the configuration of a reflector of c that checks the stream often.
func (b *testNATS) config(c Source) Config {
	return Config{
		Source: c, Publisher: b.p, Cluster: "local", Kinds: []kinds.Kind{kinds.Stores()}, StreamReplicas: 1, Workers: 8,
		TombstoneTTL: time.Hour, CheckInterval: 20 * time.Millisecond, Resync: time.Hour, Log: slog.New(slog.NewTextHandler(b.t.Output(), nil)),
		Metrics: NewMetrics(prometheus.NewRegistry()), Rewinds: NewRewoundKinds(), Halt: &inMemoryHalt{},
		LeaseTerm: func(context.Context) (uint64, error) { return b.terms.Load(), nil },
		Event:     func(context.Context, event.Change, condition.EventContent) error { b.events.Add(1); return nil },
		Health:    &Health{}, Tracer: noop.NewTracerProvider(), Propagator: propagation.TraceContext{},
	}
}

// forgeryConfig returns a configuration for tests that forge later versions. After rewoundFor intervals such a version
// counts as a restored cluster. The correction must come first, also on a busy machine.
func (b *testNATS) forgeryConfig(c Source) Config {
	cfg := b.config(c)
	cfg.CheckInterval = time.Second
	return cfg
}

// run runs a reflector until the test ends or the returned function is called.
func (b *testNATS) run(cfg Config) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() {
		err := ErrDeposed
		for errors.Is(err, ErrDeposed) { // As the election does, another term begins.
			term := cfg
			term.Term = b.terms.Add(1)
			err = Run(ctx, term)
		}
		done <- err
	}()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("run: %v", err)
		}
	}
	b.t.Cleanup(stop)
	return stop
}

// becomes waits until the stream holds the cluster's state of every object, and a current marker.
func (b *testNATS) becomes(c *fakeSource) {
	b.t.Helper()
	eventually(b.t, func() error { return b.equal(c) })
}

func (b *testNATS) equal(c *fakeSource) error {
	living := map[event.Key]bool{}
	for head, err := range b.p.ReadAll(b.t.Context(), "local", kinds.Stores().GroupResource, false) {
		if err != nil {
			return err
		}
		last, err := b.p.LastChange(b.t.Context(), head.Key)
		if err != nil {
			return err
		}
		c.mu.Lock()
		want, exists := c.objects[head.Key.Name]
		c.mu.Unlock()
		switch {
		case last.Deleted && !exists:
		case last.Deleted != !exists:
			return fmt.Errorf("%s: deleted is %v on the stream, exists is %v", head.Key, last.Deleted, exists)
		case last.ContentHash != want.ContentHash || last.Change.UID != want.UID:
			return fmt.Errorf("%s: %q on the stream, want %q", head.Key, last.ContentHash, want.ContentHash)
		case last.Version == want.ResourceVersion && !bytes.Equal(last.Change.Object, want.Change.Object):
			return fmt.Errorf("%s: object is %.80s, want %.80s", head.Key, last.Change.Object, want.Change.Object)
		default:
			living[head.Key] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(living) != len(c.objects) {
		return fmt.Errorf("%d objects on the stream, %d in the cluster", len(living), len(c.objects))
	}
	m, err := b.marker()
	if err != nil {
		return err
	}
	info := b.stream(topology.Changes).CachedInfo()
	if m.GetStream() != topology.StreamID(info) || m.GetLastSequence() > info.State.LastSeq || m.GetServed() == c.unserved {
		return fmt.Errorf("marker %v is not current", m)
	}
	return nil
}

// settles waits for several barriers of one run.
func (b *testNATS) settles() {
	b.t.Helper()
	var first *eventv1.Barrier
	eventually(b.t, func() error {
		last, _, err := b.p.LastBarrier(b.t.Context(), "local")
		switch {
		case err != nil:
			return err
		case first.GetRun() != last.GetRun():
			first = last
		}
		if n := last.GetNumber() - first.GetNumber(); n < 5 {
			return fmt.Errorf("%d barriers", n)
		}
		return nil
	})
}

// tombstones returns the tombstones of an object's name, oldest first.
func (b *testNATS) tombstones(name string) (found []publish.StoredMessage) {
	b.t.Helper()
	s := b.stream(topology.Changes)
	for sequence := uint64(1); sequence <= s.CachedInfo().State.LastSeq; sequence++ {
		msg, err := s.GetMsg(b.t.Context(), sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			b.t.Fatal(err)
		}
		key, uid, err := topology.ParseChangeOrTombstoneSubject(msg.Subject)
		if err != nil || uid == "" || key.Name != name {
			continue
		}
		c, err := event.UnmarshalChange(key, msg.Data)
		if err != nil || !c.Deleted || c.UID != uid {
			b.t.Errorf("tombstone %s is %+v, %v", msg.Subject, c, err)
		}
		found = append(found, publish.StoredMessage{Entry: publish.Entry{UID: uid, Epoch: c.Epoch, Version: c.ResourceVersion}, Change: c})
	}
	return found
}

// quiet waits until no change was published for a while, and returns the number of changes since the bus exists.
func (b *testNATS) quiet() uint64 {
	b.t.Helper()
	last, since := b.published.Load(), time.Now()
	eventually(b.t, func() error {
		if now := b.published.Load(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < 200*time.Millisecond {
			return errors.New("messages keep coming")
		}
		return nil
	})
	return last
}
