package controller_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

func both(c *event.Change) { c.Object = []byte(`{"group":"g","also":"h"}`) }

func TestEchoOfOwnWriteWakesOtherKeysOnly(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*event.Change) // the state that was written
		told func(*event.Change) // the state that NATS delivers
		want int
	}{
		"as it was written":                  {want: 1},
		"somebody else's state":              {told: func(c *event.Change) { c.ResourceVersion = "3" }, want: 2},
		"with somebody else's specification": {edit: func(c *event.Change) { c.Generation++ }, want: 2},
		"a deletion":                         {edit: func(c *event.Change) { c.Deleted = true }, told: func(c *event.Change) { c.ResourceVersion = "9" }, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestStreams(t)
			b.snapshot(0)
			s := b.start(b.js)
			b.awake()
			s.set(func(ctx context.Context, p *controller.Request[string]) error {
				o, live := s.table.GetOrTombstone(storeKey("a"))
				if p.Key != "g" || !live || o.ResourceVersion != "1" {
					return nil
				}
				now := o.Change
				now.ResourceVersion, now.Object = "2", []byte(`{"group":"g","also":"h"}`)
				if c.edit != nil {
					c.edit(&now)
				}
				if err := p.RecordWrite(ctx, o.Change, now); err != nil {
					return err
				}
				if c.told != nil {
					c.told(&now)
				}
				b.put(now)
				return nil
			})
			b.publish("a", "g", 1, both)
			eventually(t, func() error {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.passes["g"] < c.want || s.passes["h"] == 0 || s.members["h"] == "a@1 " {
					return fmt.Errorf("passes %v; the other key saw %q", s.passes, s.members["h"])
				}
				return nil
			})
			b.settled()
			s.mu.Lock()
			defer s.mu.Unlock()
			if got := s.passes["g"]; got != c.want {
				t.Errorf("%d passes of the key that wrote, want %d", got, c.want)
			}
		})
	}
}

// NATS keeps only the newest state of an object. So a returned message is lost if the controller's own write replaces
// it.
func TestPassFailingAfterWriteIsRetried(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	b.awake()
	var passes atomic.Int32
	s.set(func(ctx context.Context, p *controller.Request[string]) error {
		o, live := s.table.Get(storeKey("a"))
		switch n := passes.Add(1); {
		case !live || n > 3:
			return nil
		case n > 1:
			return fault.Unavailable(errors.New("connection refused"))
		}
		now := o.Change
		now.ResourceVersion, now.Object = "2", []byte(`{"group":"g"}`)
		if err := p.RecordWrite(ctx, o.Change, now); err != nil {
			return err
		}
		b.put(now) // This replaces the message of the reconciliation.
		return fault.Unavailable(errors.New("connection refused"))
	})
	b.publish("a", "g", 1)
	s.becomes(t, "g", "a@2 ")
}

func TestReplayWakesWriterOfState(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	b.awake()
	var wrote atomic.Bool
	s.set(func(ctx context.Context, p *controller.Request[string]) error {
		o, live := s.table.Get(storeKey("a"))
		if !live || wrote.Swap(true) {
			return nil
		}
		return p.RecordWrite(ctx, o.Change, o.Change)
	})
	b.publish("a", "g", 1)
	s.becomes(t, "g", "a@1 ")
	b.settled()
	b.replay("a")
	eventually(t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.passes["g"] != 2 {
			return fmt.Errorf("%d passes", s.passes["g"])
		}
		return nil
	})
}

func TestMessageWaitsForEnqueuedKeys(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	b.awake()
	release, entered := make(chan struct{}), make(chan struct{})
	s.set(func(_ context.Context, p *controller.Request[string]) error {
		if p.Key == "g" {
			p.Enqueue(0, "h", "i", "h")
			return nil
		}
		if p.Key == "h" {
			close(entered)
			<-release
		}
		return nil
	})
	b.publish("a", "g", 1)
	<-entered
	b.durable(func(i *jetstream.ConsumerInfo) bool { return i.NumAckPending == 1 && i.NumPending == 0 })
	close(release)
	b.settled()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passes["h"] != 1 || s.passes["i"] != 1 {
		t.Errorf("acknowledged after these passes: %v", s.passes)
	}
}

func TestFailedPassStillEnqueuesKeys(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	var failed atomic.Bool
	s.set(func(_ context.Context, p *controller.Request[string]) error {
		if p.Key == "g" && !failed.Swap(true) {
			p.Enqueue(0, "h")
			return errors.New("once")
		}
		return nil
	})
	b.publish("a", "g", 1)
	eventually(t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.members["g"] == "" || s.passes["h"] != 1 {
			return fmt.Errorf("passes: %v", s.passes)
		}
		return nil
	})
}

func TestEnqueuedKeyIsRetried(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	b.awake()
	var enqueued, failures atomic.Int32
	s.set(func(_ context.Context, p *controller.Request[string]) error {
		switch {
		case p.Key == "g" && enqueued.Add(1) == 1: // The redelivered message does not enqueue h.
			p.Enqueue(0, "h")
		case p.Key == "h" && failures.Add(1) < 3:
			return fault.Unavailable(errors.New("down"))
		}
		return nil
	})
	b.publish("a", "g", 1)
	eventually(t, func() error {
		if n := failures.Load(); n < 3 {
			return fmt.Errorf("h has been tried %d times", n)
		}
		return nil
	})
	b.settled()
}

// prioritizedGroups has groups of high priority, and one group of low priority.
type prioritizedGroups struct{ *groupBackend }

func (prioritizedGroups) Priority(group string) int {
	return map[string]int{"first": 1, "last": -1}[group]
}

func TestShouldYieldWhenAllWorkersAreBusy(t *testing.T) {
	for workers, want := range map[int]bool{1: true, 2: false} {
		b := newTestStreams(t)
		b.snapshot(0)
		s := b.startAs(b.js, func(g *groupBackend) controller.Reconciler[string] { return prioritizedGroups{g} }, func(c *controller.Config) { c.Workers = workers })
		b.awake()
		entered, ended, first := make(chan bool), make(chan bool), make(chan struct{})
		s.set(func(ctx context.Context, p *controller.Request[string]) error {
			if p.Key == "first" {
				close(first)
				return nil
			}
			entered <- p.ShouldYield()
			for !p.ShouldYield() {
				select {
				case <-first: // Another worker took the key.
					ended <- false
					return nil
				case <-ctx.Done():
					return ctx.Err()
				default:
					runtime.Gosched()
				}
			}
			ended <- true
			return nil
		})
		b.publish("last", "last", 1)
		if <-entered {
			t.Error("nobody else waits")
		}
		b.publish("first", "first", 2)
		if got := <-ended; got != want {
			t.Errorf("with %d workers: %v", workers, got)
		}
		<-first
		b.settled()
	}
}

func TestEngineReconcilesByPriority(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	registry := prometheus.NewRegistry()
	s := b.startAs(b.js, func(g *groupBackend) controller.Reconciler[string] { return prioritizedGroups{g} }, func(c *controller.Config) { c.Workers, c.Metrics = 1, registry })
	b.awake()
	var (
		mu   sync.Mutex
		seen []string
	)
	release, entered := make(chan struct{}), make(chan struct{})
	s.set(func(_ context.Context, p *controller.Request[string]) error {
		if p.Key == "gate" {
			close(entered)
			<-release
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, p.Key)
		return nil
	})
	b.publish("gate", "gate", 1)
	<-entered
	for i, group := range []string{"last", "other", "first"} {
		b.publish(group, group, i+2)
	}
	eventually(t, func() error {
		return testutil.GatherAndCompare(registry, strings.NewReader(`# HELP entail_keys_waiting Keys that wait for reconciliation.
# TYPE entail_keys_waiting gauge
entail_keys_waiting{service="test"} 3
`), "entail_keys_waiting")
	})
	s.set(func(_ context.Context, p *controller.Request[string]) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, p.Key)
		return nil
	})
	close(release)
	s.becomes(t, "last", "last@2 ")
	mu.Lock()
	defer mu.Unlock()
	seen = slices.DeleteFunc(seen, func(group string) bool { return group == "gate" })
	if want := []string{"first", "other", "last"}; !slices.Equal(seen, want) {
		t.Errorf("order %v, want %v", seen, want)
	}
}

// driftDetectingGroups can read the state of all groups at once.
type driftDetectingGroups struct {
	*groupBackend
	observe func() ([]string, error)
}

func (o driftDetectingGroups) DriftedKeys(context.Context) ([]string, error) { return o.observe() }

func TestResyncCallsDriftDetectorOnce(t *testing.T) {
	b := newTestStreams(t)
	b.publish("a", "g", 1)
	b.publish("b", "h", 2)
	b.snapshot(2)
	var asked, thorough, others atomic.Int32
	observe := func() ([]string, error) {
		switch asked.Add(1) {
		case 1:
			return nil, fault.Unavailable(errors.New("not there"))
		case 2:
			var none []string
			return none[1:], nil // a panic
		}
		return []string{"h"}, nil
	}
	s := b.startAs(b.js, func(g *groupBackend) controller.Reconciler[string] { return driftDetectingGroups{g, observe} },
		func(c *controller.Config) { c.Resync = 200 * time.Millisecond })
	s.set(func(_ context.Context, p *controller.Request[string]) error {
		switch {
		case p.Resync && p.Key == "h":
			thorough.Add(1)
		case p.Resync:
			others.Add(1)
		}
		return nil
	})
	eventually(t, func() error {
		if thorough.Load() < 2 {
			return fmt.Errorf("%d thorough passes after %d observations", thorough.Load(), asked.Load())
		}
		return nil
	})
	if others.Load() != 0 || len(b.letters()) != 0 {
		t.Errorf("%d thorough passes of keys that nobody named, %d dead letters", others.Load(), len(b.letters()))
	}
}

// TestUnavailableDependencyDoesNotBlockOtherKeys has more messages that wait for one dependency than the server allows
// unacknowledged.
func TestUnavailableDependencyDoesNotBlockOtherKeys(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js, func(c *controller.Config) { c.MinDelay, c.MaxDelay, c.Workers = 5*time.Second, 5*time.Second, 64 })
	b.awake()
	var up atomic.Bool
	s.set(func(_ context.Context, p *controller.Request[string]) error {
		if p.Key != "good" && !up.Load() {
			return fault.Unavailable(errors.New("connection refused"))
		}
		return nil
	})
	const objects = topology.MaxAckPending + 200
	for i := range objects {
		b.publish(fmt.Sprint(i), fmt.Sprint(i), i+1)
	}
	b.publish("good", "good", objects+1)
	s.becomes(t, "good", fmt.Sprintf("good@%d ", objects+1))
	up.Store(true)
	eventually(t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.members) != objects+1 {
			return fmt.Errorf("%d of %d groups", len(s.members), objects+1)
		}
		return nil
	})
	b.settled()
	if got := len(b.letters()); got != 0 {
		t.Errorf("%d dead letters after an outage", got)
	}
}

func TestRequeueAfterAcksMessage(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	var passes atomic.Int32
	s.set(func(_ context.Context, p *controller.Request[string]) error {
		if p.Key == "g" && passes.Add(1) < 5 {
			p.RequeueWithBackoff(errors.New("a right is missing"))
		}
		return nil
	})
	b.publish("a", "g", 1)
	eventually(t, func() error {
		if n := passes.Load(); n < 5 {
			return fmt.Errorf("%d passes", n)
		}
		return nil
	})
	b.settled()
	if info := b.durable(func(*jetstream.ConsumerInfo) bool { return true }); info.NumRedelivered != 0 {
		t.Errorf("%d messages came again", info.NumRedelivered)
	}
	if n := len(b.letters()); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

func TestLastReportCountsWithAllWrites(t *testing.T) {
	s := newTestStreams(t)
	s.snapshot(0)
	p := controller.NewRequest(s.start(s.js).view, "g", false)
	a, b := event.Change{Key: storeKey("a"), UID: "a", ResourceVersion: "1"}, event.Change{Key: storeKey("b"), UID: "b", ResourceVersion: "1"}
	p.Report(a, eventv1.Outcome_OUTCOME_PENDING, "first")
	p.Report(b, eventv1.Outcome_OUTCOME_APPLIED, "")
	p.Report(a, eventv1.Outcome_OUTCOME_REJECTED, "last")
	p.CountWrite(a)
	if err := p.RecordWrite(t.Context(), a, a); err != nil {
		t.Fatal(err)
	}
	want := []controller.Result{
		{Change: a, Outcome: eventv1.Outcome_OUTCOME_REJECTED, Message: "last", Writes: 2},
		{Change: b, Outcome: eventv1.Outcome_OUTCOME_APPLIED},
	}
	for i, got := range p.Results() {
		if fmt.Sprint(got) != fmt.Sprint(want[i]) {
			t.Errorf("got %+v, want %+v", got, want[i])
		}
	}
}

// One reason to wait may be a password whose change no message reports.
func TestRequeueAfterUsesShortestDelay(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.connect())
	s.set(func(_ context.Context, p *controller.Request[string]) error {
		for _, after := range []time.Duration{time.Hour, 50 * time.Millisecond, time.Hour} {
			p.RequeueAfter(after)
		}
		return nil
	})
	b.publish("a", "g", 1)
	eventually(t, func() error { return s.ran("g", 20) }) // A new leader also resyncs several times.
}

func TestRequeueOnChangeWakesKey(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	b.awake()
	var again []bool
	s.set(func(_ context.Context, p *controller.Request[string]) error {
		if p.Key == "h" {
			again = append(again, p.RequeueOnChange(storeKey("a")), p.RequeueOnChange(storeKey("a")))
		}
		return nil
	})
	b.publish("a", "g", 1)
	s.becomes(t, "g", "a@1 ")
	b.publish("b", "h", 2)
	s.becomes(t, "h", "b@2 ")
	b.settled()
	b.publish("a", "i", 3) // The object moves from g to i. The key h only watches it.
	s.becomes(t, "i", "a@3 ")
	b.settled()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passes["h"] != 2 || s.passes["g"] != 2 || s.passes["i"] != 1 {
		t.Errorf("passes: %v", s.passes)
	}
	if want := []bool{true, false, true, false}; !slices.Equal(again, want) {
		t.Errorf("watching told to look again: %v, want %v", again, want)
	}
}
