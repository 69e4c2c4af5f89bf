package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/internal/topology"
)

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
func (b *testStreams) leaseHolder() (text string, err error) {
	stream, err := b.js.Stream(b.t.Context(), topology.Changes)
	if err != nil {
		return "", err
	}
	msg, err := stream.GetLastMsgForSubject(b.t.Context(), topology.LeaseSubject("test"))
	if err != nil {
		return "", err
	}
	return string(msg.Data), nil
}

// wake returns the sequence of the newest message that requests a resync.
func (b *testStreams) wake() uint64 {
	b.t.Helper()
	stream, err := b.js.Stream(b.t.Context(), topology.Changes)
	if err != nil {
		b.t.Fatal(err)
	}
	msg, err := stream.GetLastMsgForSubject(b.t.Context(), topology.ResyncSubject("test"))
	if err != nil {
		b.t.Fatal(err)
	}
	return msg.Sequence
}

func TestPassIsFencedInLaterTerm(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	reached := 0
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer api.Close()
	replica, elector := b.startReplica()
	eventually(t, func() error { return held(elector) })
	refused := make(chan error, 1)
	replica.set(func(ctx context.Context, _ *controller.Request[string]) error {
		replica.set(nil)
		b.repin()
		b.publish("b", "h", 2)
		eventually(t, func() error { return replica.ran("h", 1) }) // In the term that began with this message.
		err := postFenced(ctx, elector, api.URL)
		refused <- err
		return err
	})
	b.publish("a", "g", 1)
	if err := <-refused; !errors.Is(err, leader.ErrNotLeader) || reached > 0 {
		t.Errorf("%v, %d requests left", err, reached)
	}
}

func TestDrainKeepsTermUntilPassesEnd(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	log := slog.New(slog.DiscardHandler)
	replica := b.start(b.connect(), func(c *controller.Config) { c.Grace, c.Log = 50*time.Millisecond, log })
	elector := b.elector
	eventually(t, func() error { return held(elector) })
	begun, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	replica.set(func(context.Context, *controller.Request[string]) error {
		close(begun)
		<-end
		return nil
	})
	b.publish("a", "g", 1)
	<-begun
	replica.stop()
	if by, err := b.leaseHolder(); err != nil || by == "" {
		t.Errorf("claim %q, %v; want that of who is still at work", by, err)
	}
}

// unsure gives a service a term without a lease.
func (b *testStreams) unsure(c *controller.Config) {
	away := b.connect()
	away.Conn().Close()
	c.Elector = leader.NewElector(away, c.Service.Name, takeover, c.Log)
}

// enqueueCounter counts how often keys are enqueued.
type enqueueCounter struct {
	*groupBackend
	times *atomic.Int32
}

func (a enqueueCounter) Priority(string) int {
	a.times.Add(1)
	return 0
}

func TestKeysWaitForTermWithoutRequeue(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	var times atomic.Int32
	replica := b.startAs(b.connect(), func(g *groupBackend) controller.Reconciler[string] { return enqueueCounter{g, &times} }, b.unsure)
	const keys = 50
	for i := range keys {
		b.publish(fmt.Sprint("n", i), fmt.Sprint("g", i), i+1)
	}
	b.durable(func(i *jetstream.ConsumerInfo) bool { return i.NumAckPending >= keys })
	before := times.Load()
	<-time.After(time.Second)
	if n := times.Load() - before; n > 4*keys { // Each key may be enqueued once by its messages and once by a wake-up.
		t.Errorf("keys came into the queue %d times while little happened", n)
	}
	if err := replica.ran("g0", 1); err == nil {
		t.Error("a pass was made in a turn that is not sure")
	}
	begun := time.Now()
	replica.stop()
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("the shutdown took %s", took)
	}
	b.start(b.connect()).becomes(t, "g0", "n0@1 ")
}

// A key that must be retried later has no message left, because all its messages are acknowledged.
func TestNewLeaderRunsDelayedKeysOfDeadLeader(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	js := b.connect()
	active := b.start(js)
	elector := b.elector
	eventually(t, func() error { return held(elector) })
	asked := make(chan struct{}, 1)
	active.set(func(_ context.Context, p *controller.Request[string]) error {
		p.RequeueAfter(time.Hour)
		select {
		case asked <- struct{}{}:
		default:
		}
		return nil
	})
	before := b.wake()
	standby, _ := b.startReplica()
	eventually(t, func() error {
		if b.wake() == before {
			return errors.New("the standby has not started")
		}
		return nil
	})
	b.publish("a", "g", 1)
	<-asked
	b.settled()
	js.Conn().Close()
	eventually(t, func() error { return standby.ran("g", 1) })
}

// A leader publishes the results of its earlier term again. The leader in between may have published other results and
// stopped.
func TestNewTermRepublishesResults(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	_, elector := b.startReplica()
	eventually(t, func() error { return held(elector) })
	b.publish("c", "g", 1)
	applied := func() error {
		r, _, err := b.result("c")
		if err == nil && r.GetOutcome() != eventv1.Outcome_OUTCOME_APPLIED {
			err = fmt.Errorf("the result is %s", r.GetOutcome())
		}
		return err
	}
	eventually(t, applied)
	key := storeKey("c")
	other, err := proto.Marshal(&eventv1.ResourceResult{Ref: key.ToObjectRef(), Service: "test", ResourceVersion: "1", Outcome: eventv1.Outcome_OUTCOME_RETRYING})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.js.Publish(t.Context(), topology.ResultSubject("test", key), other); err != nil {
		t.Fatal(err)
	}
	b.repin()
	b.publish("b", "h", 2) // The term begins with this message.
	eventually(t, applied)
}

// A replica that was cut off must not publish results for objects that another leader has handled since.
func TestLostTermDropsUnpublishedResults(t *testing.T) {
	const (
		underWay  = 2 * time.Second // No publication in progress takes longer.
		untilSaid = 7 * time.Second // Queued results are retried within this time, after any number of failures.
	)
	b := newTestStreams(t)
	b.snapshot(0)
	replica, elector := b.startReplica()
	eventually(t, func() error { return held(elector) })
	if err := b.js.DeleteStream(t.Context(), topology.Results); err != nil {
		t.Fatal(err)
	}
	b.publish("c", "g", 1)
	replica.becomes(t, "g", "c@1 ")
	b.settled()
	claims := func(until time.Time) {
		for ; ; <-time.After(takeover.LeaseLifetime / 4) {
			if _, err := b.js.Publish(t.Context(), topology.LeaseSubject("test"), []byte("another")); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(until) {
				break
			}
		}
	}
	claims(time.Now())
	eventually(t, func() error {
		if held(elector) == nil {
			return errors.New("it has not noticed that its turn is over")
		}
		return nil
	})
	claims(time.Now().Add(underWay))
	if err := topology.EnsureStreams(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	key := storeKey("c")
	other, err := proto.Marshal(&eventv1.ResourceResult{Ref: key.ToObjectRef(), Service: "test", ResourceVersion: "1", Outcome: eventv1.Outcome_OUTCOME_RETRYING})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.js.Publish(t.Context(), topology.ResultSubject("test", key), other); err != nil {
		t.Fatal(err)
	}
	claims(time.Now().Add(untilSaid))
	if r, _, err := b.result("c"); err != nil || r.GetOutcome() != eventv1.Outcome_OUTCOME_RETRYING {
		t.Errorf("what the one at work said was overwritten: %v, %v", r, err)
	}
}

// The time of publication decides which changes are recent, not the time of observation, because NATS may have been
// unreachable.
func TestNewTermResyncsRecentlyPublishedKeys(t *testing.T) {
	b := newTestStreams(t)
	b.publish("a", "g", 1, func(c *event.Change) { c.ObservedAt = time.Now().Add(-time.Hour) })
	b.snapshot(1)
	replica := b.start(b.connect())
	var thorough atomic.Bool
	replica.set(func(_ context.Context, p *controller.Request[string]) error {
		if p.Resync {
			thorough.Store(true)
		}
		return nil
	})
	eventually(t, func() error { return held(b.elector) })
	began := time.Now()
	eventually(t, func() error {
		if !thorough.Load() {
			return errors.New("a late call of the replica before could have undone what was done")
		}
		return nil
	})
	if waited := time.Since(began); waited < takeover.SettlingTime/2 {
		t.Errorf("it was looked at after %s, when such calls may still be on their way", waited)
	}
}

func TestOwnWriteCountsAsRecent(t *testing.T) {
	v := informer.New(informer.Config{Log: slog.New(slog.DiscardHandler)})
	informer.RegisterLister[object](v, kinds.Stores(), nil)
	now := event.Change{Key: storeKey("a"), UID: "u", ResourceVersion: "1", Object: []byte(`{}`)}
	before := time.Now()
	if err := controller.NewRequest(v, "g", false).RecordWrite(t.Context(), now, now); err != nil {
		t.Fatal(err)
	}
	if got := v.KeysPublishedSince(before.Add(-time.Second)); len(got) != 1 {
		t.Errorf("new are %v", got)
	}
}

func TestFirstTermReconcilesEverythingOnce(t *testing.T) {
	const n = 1000 // The number of keys; each key has two objects.
	b := newTestStreams(t)
	for i := range n {
		b.publish(fmt.Sprint("a", i), fmt.Sprint("g", i), 1)
	}
	for i := range n {
		b.publish(fmt.Sprint("b", i), fmt.Sprint("g", i), 1)
	}
	b.snapshot(2 * n)
	first := b.start(b.js)
	first.becomes(t, "g0", "a0@1 b0@1 ")
	b.settled()
	first.stop()
	var usual, thorough atomic.Int32
	b.startAs(b.js, func(g *groupBackend) controller.Reconciler[string] {
		g.set(func(_ context.Context, p *controller.Request[string]) error {
			if p.Resync {
				thorough.Add(1)
			} else {
				usual.Add(1)
			}
			return nil
		})
		return g
	})
	eventually(t, func() error { // Recently published changes are resynced later.
		if is := thorough.Load(); is < n {
			return fmt.Errorf("%d thorough passes", is)
		}
		return nil
	})
	b.settled()
	if once, again := usual.Load(), thorough.Load(); once != n || again != n {
		t.Errorf("%d passes, and then %d thorough ones, want %d of each", once, again, n)
	}
}

// After a restore of NATS, the informer shows old states before a barrier proves that they are current. A reconciliation
// that began earlier may read them.
func TestPassIsFencedAfterInformerReload(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	var reached atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer api.Close()
	replica, elector := b.startReplica()
	eventually(t, func() error { return held(elector) })
	for i, reload := range []bool{false, true} {
		before, result := reached.Load(), make(chan error, 1)
		replica.set(func(ctx context.Context, _ *controller.Request[string]) error {
			replica.set(nil)
			if reload {
				b.reload(replica)
			}
			err := postFenced(ctx, elector, api.URL)
			result <- err
			return err
		})
		b.publish("a", "g", i+1)
		err, sent := <-result, reached.Load() > before
		if sent == reload || errors.Is(err, informer.ErrIncomplete) != reload {
			t.Errorf("reloaded %t: got %v, sent %t", reload, err, sent)
		}
	}
}

// reload makes the informer of a replica load the stream again, and waits until it is complete.
func (b *testStreams) reload(replica *runningEngine) {
	b.t.Helper()
	before := replica.reloads.Load()
	b.snapshot(7) // The informer holds one object.
	eventually(b.t, func() error {
		if replica.reloads.Load() == before {
			return errors.New("the informer has not loaded the stream again")
		}
		return nil
	})
	b.snapshot(1)
	eventually(b.t, replica.view.IncompleteErr)
}

// postFenced sends a POST request through the fence of an elector.
func postFenced(ctx context.Context, elector *leader.Elector, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := elector.FenceTransport(http.DefaultTransport).RoundTrip(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
