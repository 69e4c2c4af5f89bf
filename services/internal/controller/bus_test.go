package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// takeover has short bounds, because these tests wait for many takeovers.
var takeover = topology.TakeoverBounds{LeaseLifetime: time.Second, PinTimeout: 2 * time.Second, SettlingTime: 5 * time.Second} //nolint:gochecknoglobals // It never changes.

// testStreams is a real NATS server with all streams. Its methods publish like the watcher.
type testStreams struct {
	t       *testing.T
	js      jetstream.JetStream
	server  *server.Server
	options server.Options
	// elector belongs to the replica that was started last.
	elector *leader.Elector
}

func newTestStreams(t *testing.T) *testStreams {
	t.Helper()
	port, err := devserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b := &testStreams{t: t, options: server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: t.TempDir(), NoSigs: true}}
	b.boot()
	t.Cleanup(b.shutdown)
	b.js = b.connect()
	if err := topology.EnsureStreams(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	testenv.WriteBarriers(t, b.js, "local")
	return b
}

// boot starts the server. A second call restarts it with the same streams on the same port.
func (b *testStreams) boot() {
	b.t.Helper()
	options := b.options
	s, err := server.NewServer(&options)
	if err != nil {
		b.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		b.t.Fatal("server does not start")
	}
	b.server = s
}

func (b *testStreams) shutdown() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

func (b *testStreams) connect() jetstream.JetStream {
	b.t.Helper()
	conn, err := nats.Connect(b.server.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
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

func storeKey(name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: name}
}

// publish publishes an object. The test reconciler uses its group as the key.
func (b *testStreams) publish(name, group string, version int, edit ...func(*event.Change)) {
	b.t.Helper()
	c := event.Change{
		Key: storeKey(name), UID: "uid-" + name, ResourceVersion: fmt.Sprint(version), Generation: int64(version),
		Object: fmt.Appendf(nil, `{"group":%q}`, group), Epoch: "e", ObservedAt: time.Now(),
	}
	for _, f := range edit {
		f(&c)
	}
	b.put(c)
}

func (b *testStreams) put(c event.Change) {
	b.t.Helper()
	data, err := c.Marshal()
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.js.PublishMsg(b.t.Context(), &nats.Msg{Subject: topology.ChangeSubject(c.Key), Header: topology.ChangeHeaders(c), Data: data}); err != nil {
		b.t.Fatal(err)
	}
}

// awaitConsumer waits until a service has its durable consumer.
func (b *testStreams) awaitConsumer() {
	b.t.Helper()
	eventually(b.t, func() error {
		_, err := b.js.Consumer(b.t.Context(), topology.Changes, "test")
		return err
	})
}

// replay publishes the newest state of an object again.
func (b *testStreams) replay(name string) {
	b.t.Helper()
	stream, err := b.js.Stream(b.t.Context(), topology.Changes)
	if err != nil {
		b.t.Fatal(err)
	}
	last, err := stream.GetLastMsgForSubject(b.t.Context(), topology.ChangeSubject(storeKey(name)))
	if err != nil {
		b.t.Fatal(err)
	}
	again := nats.NewMsg(last.Subject)
	again.Data, again.Header = last.Data, last.Header
	again.Header.Set(topology.ReplayHeader, "1")
	if _, err := b.js.PublishMsg(b.t.Context(), again); err != nil {
		b.t.Fatal(err)
	}
}

// snapshot writes a snapshot marker for the present state of the stream.
func (b *testStreams) snapshot(count int) {
	b.t.Helper()
	stream, err := b.js.Stream(b.t.Context(), topology.Changes)
	if err != nil {
		b.t.Fatal(err)
	}
	info := stream.CachedInfo()
	kind := kinds.Stores().GroupResource
	m := &eventv1.SnapshotMarker{
		Cluster: "local", Group: kind.Group, Resource: kind.Resource, Epoch: "e", Count: int64(count),
		Stream: topology.StreamID(info), LastSequence: info.State.LastSeq, Served: true,
	}
	data, err := proto.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.js.Publish(b.t.Context(), topology.MarkerSubject("local", kind), data); err != nil {
		b.t.Fatal(err)
	}
}

type object struct {
	Group string `json:"group"`
	Also  string `json:"also"`
}

func groupsOf(o *object) []string { return []string{o.Group, o.Also} }

// groupBackend is a reconciler and its backend. The backend holds the names of each group's members.
type groupBackend struct {
	table *informer.Lister[object]
	// before runs at the start of every reconciliation.
	before func(ctx context.Context, p *controller.Request[string]) error

	mu      sync.Mutex
	members map[string]string
	writes  int
	passes  map[string]int
	running map[string]int
	overlap bool
}

func (g *groupBackend) AffectedKeys(k event.Key) []string {
	o, _ := g.table.GetOrTombstone(k)
	if o.Value == nil {
		return nil
	}
	keys := slices.DeleteFunc(groupsOf(o.Value), func(group string) bool { return group == "" })
	return append(keys, keys...) // The controller must tolerate duplicates.
}

func (g *groupBackend) Reconcile(ctx context.Context, p *controller.Request[string]) error {
	group := p.Key
	g.mu.Lock()
	g.passes[group]++
	g.running[group]++
	g.overlap = g.overlap || g.running[group] > 1
	before := g.before
	g.mu.Unlock()
	defer func() { g.mu.Lock(); g.running[group]--; g.mu.Unlock() }()
	if before != nil {
		if err := before(ctx, p); err != nil {
			return err
		}
	}
	want := ""
	for _, o := range g.table.ListByIndex("group", group) {
		want += o.Key.Name + "@" + o.ResourceVersion + " "
		p.Report(o.Change, eventv1.Outcome_OUTCOME_APPLIED, "")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.members[group] != want {
		g.members[group] = want
		g.writes++
	}
	return nil
}

func (g *groupBackend) set(f func(ctx context.Context, p *controller.Request[string]) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = f
}

func (g *groupBackend) holds(group string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members[group]
}

func (g *groupBackend) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.writes
}

// runningEngine is one running controller.
type runningEngine struct {
	*groupBackend
	view    *informer.Informer
	reloads *atomic.Int32
	stop    func()
	// held, if set, blocks the informer until the channel is closed.
	held atomic.Pointer[chan struct{}]
}

// start runs a controller on js. service.stop drains it.
func (b *testStreams) start(js jetstream.JetStream, edit ...func(*controller.Config)) *runningEngine {
	b.t.Helper()
	return b.startAs(js, func(g *groupBackend) controller.Reconciler[string] { return g }, edit...)
}

// startAs runs a controller with the reconciler that as returns for the groups.
func (b *testStreams) startAs(js jetstream.JetStream, as func(*groupBackend) controller.Reconciler[string], edit ...func(*controller.Config)) *runningEngine {
	b.t.Helper()
	log := slog.New(slog.DiscardHandler)
	v := informer.New(informer.Config{JS: js, Service: "test", Log: log})
	table := informer.RegisterLister(v, kinds.Stores(), map[string]func(*object) []string{
		"group": groupsOf,
	})
	g := &groupBackend{table: table, members: map[string]string{}, passes: map[string]int{}, running: map[string]int{}}
	cfg := controller.Config{
		JS: js, Log: log, View: v, Takeover: takeover, MinDelay: 10 * time.Millisecond, MaxDelay: 50 * time.Millisecond, MaxAttempts: 3,
		Service: topology.Service{Name: "test", Kinds: []event.GroupResource{kinds.Stores().GroupResource}},
	}
	cfg.Elector = leader.NewElector(js, cfg.Service.Name, takeover, log)
	for _, f := range edit {
		f(&cfg)
	}
	b.elector = cfg.Elector
	var reloads atomic.Int32
	v.OnReload(func() { reloads.Add(1) })
	s := &runningEngine{groupBackend: g, view: v, reloads: &reloads}
	v.OnChange(s.heldUp)
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = v.Run(ctx) })
	running.Go(func() {
		if err := controller.Run(ctx, cfg, as(g)); err != nil {
			b.t.Errorf("run: %v", err)
		}
	})
	s.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	b.t.Cleanup(s.stop)
	return s
}

// eventually polls until what returns nil, or fails with its last error.
func eventually(t *testing.T, what func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := what()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// durable polls until ok returns true for the durable consumer.
func (b *testStreams) durable(ok func(*jetstream.ConsumerInfo) bool) *jetstream.ConsumerInfo {
	b.t.Helper()
	var info *jetstream.ConsumerInfo
	eventually(b.t, func() error {
		c, err := b.js.Consumer(b.t.Context(), topology.Changes, "test")
		if err != nil {
			return err
		}
		if info = c.CachedInfo(); !ok(info) {
			return fmt.Errorf("consumer: pending %d, unacknowledged %d, acknowledged up to %d", info.NumPending, info.NumAckPending, info.AckFloor.Consumer)
		}
		return nil
	})
	return info
}

// awake waits until the service has handled its first wake-up and its term has begun.
func (b *testStreams) awake() {
	b.t.Helper()
	eventually(b.t, func() error { return held(b.elector) })
	b.durable(func(i *jetstream.ConsumerInfo) bool { return i.AckFloor.Consumer > 0 })
}

// settled waits until the durable consumer has no open message.
func (b *testStreams) settled() {
	b.t.Helper()
	b.durable(func(i *jetstream.ConsumerInfo) bool { return i.NumPending+uint64(i.NumAckPending) == 0 })
}

func (s *runningEngine) becomes(t *testing.T, group, want string) {
	t.Helper()
	eventually(t, func() error {
		if got := s.holds(group); got != want {
			return fmt.Errorf("group %s holds %q, want %q", group, got, want)
		}
		return nil
	})
}

func (b *testStreams) letters() []*jetstream.RawStreamMsg {
	b.t.Helper()
	stream, err := b.js.Stream(b.t.Context(), topology.DeadLetters)
	if err != nil {
		b.t.Fatal(err)
	}
	var all []*jetstream.RawStreamMsg
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(b.t.Context(), seq)
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}
