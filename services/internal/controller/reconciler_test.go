package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestEngineWaitsForInformerSync(t *testing.T) {
	b := newTestStreams(t)
	b.publish("a", "g", 1)
	s := b.start(b.js)
	eventually(t, func() error {
		if err := s.view.IncompleteErr(); err == nil || !strings.Contains(err.Error(), "no snapshot of stores") {
			return fmt.Errorf("completeness: %v", err)
		}
		return nil
	})
	if s.holds("g") != "" {
		t.Error("reconciled without a snapshot")
	}
	b.snapshot(1)
	s.becomes(t, "g", "a@1 ")
}

func TestMessageIsAckedAfterReconcile(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	release, entered := make(chan struct{}), make(chan struct{}, 10)
	s.set(func(context.Context, *controller.Request[string]) error { entered <- struct{}{}; <-release; return nil })
	b.publish("a", "g", 1)
	<-entered
	b.durable(func(i *jetstream.ConsumerInfo) bool { return i.NumAckPending == 1 && i.NumPending == 0 })
	close(release)
	b.settled()
	s.becomes(t, "g", "a@1 ")
}

func TestMovedReferenceReconcilesOldAndNewKey(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	b.publish("a", "old", 1)
	s.becomes(t, "old", "a@1 ")
	b.publish("a", "new", 2)
	s.becomes(t, "new", "a@2 ")
	s.becomes(t, "old", "")
	b.publish("a", "new", 3, func(c *event.Change) { c.Deleted = true })
	s.becomes(t, "new", "")
}

// The newest state of a moved object does not name the old key. A redelivered message does not name it either.
func TestOldKeyOfMovedReferenceIsRetried(t *testing.T) {
	for name, meanwhile := range map[string]func(b *testStreams){
		"the message comes again":     func(*testStreams) {},
		"a newer one takes its place": func(b *testStreams) { b.publish("a", "newest", 3) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestStreams(t)
			b.snapshot(0)
			s := b.start(b.js)
			b.publish("a", "old", 1)
			s.becomes(t, "old", "a@1 ")
			var failures atomic.Int32
			s.set(func(_ context.Context, p *controller.Request[string]) error {
				if p.Key == "old" && failures.Add(1) <= 3 {
					return fault.Unavailable(errors.New("connection refused"))
				}
				return nil
			})
			b.publish("a", "new", 2)
			eventually(t, func() error {
				if failures.Load() == 0 {
					return errors.New("not tried yet")
				}
				return nil
			})
			meanwhile(b)
			s.becomes(t, "old", "")
			b.settled()
		})
	}
}

func TestDeadLetterDoesNotBlockOtherKeys(t *testing.T) {
	for name, test := range map[string]struct {
		spoil  func(b *testStreams, s *runningEngine)
		reason string
	}{
		"rubbish that the watcher replaces": {func(b *testStreams, _ *runningEngine) {
			b.awaitConsumer()
			if _, err := b.js.Publish(b.t.Context(), topology.ChangeSubject(storeKey("bad")), []byte("\xffrubbish")); err != nil {
				b.t.Fatal(err)
			}
			eventually(b.t, func() error {
				if len(b.letters()) == 0 {
					return errors.New("no dead letter")
				}
				return nil
			})
			b.publish("bad", "bad", 1)
		}, "decode change"},
		"a subject that names no object": {func(b *testStreams, _ *runningEngine) {
			subject := strings.TrimSuffix(topology.ChangesFilter("local", kinds.Stores().GroupResource), ">") + "x"
			if _, err := b.js.Publish(b.t.Context(), subject, nil); err != nil {
				b.t.Fatal(err)
			}
		}, "tokens"},
		"an object of another shape": {func(b *testStreams, _ *runningEngine) {
			b.publish("bad", "g", 1, func(c *event.Change) { c.Object = []byte(`{"group":{}}`) })
		}, "decode object"},
		"an error that no retry cures": {func(b *testStreams, s *runningEngine) {
			s.set(func(_ context.Context, p *controller.Request[string]) error {
				if p.Key == "bad" {
					return fault.Terminal(errors.New("beyond repair"))
				}
				return nil
			})
			b.publish("bad", "bad", 1)
		}, "beyond repair"},
		"an error of our own, again and again": {func(b *testStreams, s *runningEngine) {
			s.set(func(_ context.Context, p *controller.Request[string]) error {
				if p.Key == "bad" {
					return errors.New("bug\nwith a second line")
				}
				return nil
			})
			b.publish("bad", "bad", 1)
		}, "bug with a second line"},
		"a panic": {func(b *testStreams, s *runningEngine) {
			s.set(func(_ context.Context, p *controller.Request[string]) error {
				if p.Key == "bad" {
					var none []string
					_ = none[len(p.Key)]
				}
				return nil
			})
			b.publish("bad", "bad", 1)
		}, "out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestStreams(t)
			b.snapshot(0)
			s := b.start(b.js)
			test.spoil(b, s)
			b.publish("good", "good", 1)
			s.becomes(t, "good", "good@1 ")
			b.settled()
			letters := b.letters()
			if len(letters) != 1 {
				t.Fatalf("%d dead letters, want 1", len(letters))
			}
			if got := letters[0].Header.Get(topology.ReasonHeader); !strings.Contains(got, test.reason) {
				t.Errorf("reason %q does not say %q", got, test.reason)
			}
			if got := letters[0].Header.Get(topology.SubjectHeader); !strings.HasPrefix(got, "entail.changes.local.") {
				t.Errorf("original subject %q", got)
			}
		})
	}
}

func TestUnavailableErrorsDoNotCountAsAttempts(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	var failures atomic.Int32
	s.set(func(context.Context, *controller.Request[string]) error {
		if failures.Add(1) <= 12 { // four times MaxAttempts
			return fault.Unavailable(errors.New("connection refused"))
		}
		return nil
	})
	b.publish("a", "g", 1)
	s.becomes(t, "g", "a@1 ")
	b.settled()
	if got := len(b.letters()); got != 0 {
		t.Errorf("%d dead letters after an outage", got)
	}
}

func TestNewChangesDoNotUseUpAttempts(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js, func(c *controller.Config) { c.MinDelay, c.MaxDelay = time.Second, time.Second })
	var attempts atomic.Int32
	s.set(func(context.Context, *controller.Request[string]) error {
		if attempts.Add(1) <= 6 { // twice MaxAttempts
			return errors.New("trouble")
		}
		return nil
	})
	for i := range 10 {
		b.publish(fmt.Sprintf("n%d", i), "g", i+1)
		eventually(t, func() error {
			if got := attempts.Load(); got <= int32(i) && got <= 6 {
				return fmt.Errorf("%d attempts", got)
			}
			return nil
		})
	}
	b.settled()
	if got := len(b.letters()); got != 0 {
		t.Errorf("%d dead letters", got)
	}
}

func TestEngineSerializesAndCoalescesKey(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	sent := make(chan struct{})
	all := sync.OnceFunc(func() { close(sent) })
	t.Cleanup(all)
	s.set(func(context.Context, *controller.Request[string]) error { <-sent; return nil })
	want := ""
	for i := range 300 {
		b.publish(fmt.Sprintf("n%03d", i), "g", i+1)
		want += fmt.Sprintf("n%03d@%d ", i, i+1)
	}
	all()
	s.becomes(t, "g", want)
	b.settled()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overlap {
		t.Error("two reconciliations of one key at once")
	}
	if s.passes["g"] > 150 {
		t.Errorf("%d passes for 300 changes", s.passes["g"])
	}
}

func TestRedeliveryIsIdempotent(t *testing.T) {
	b := newTestStreams(t)
	for i := range 50 {
		b.publish(fmt.Sprintf("n%02d", i), fmt.Sprintf("g%d", i%5), i+1)
	}
	b.snapshot(50)
	s := b.start(b.js)
	b.settled()
	s.becomes(t, "g4", "n04@5 n09@10 n14@15 n19@20 n24@25 n29@30 n34@35 n39@40 n44@45 n49@50 ")
	s.stop()
	s.mu.Lock()
	members, writes := s.members, s.writes
	s.mu.Unlock()

	// The durable consumer is deleted, so every message is delivered again.
	if err := b.js.DeleteConsumer(t.Context(), topology.Changes, "test"); err != nil {
		t.Fatal(err)
	}
	second := b.startAs(b.js, func(g *groupBackend) controller.Reconciler[string] {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.members = members
		return g
	})
	second.becomes(t, "g4", members["g4"])
	b.awake()
	b.settled()
	second.mu.Lock()
	defer second.mu.Unlock()
	if second.writes != 0 {
		t.Errorf("replay wrote %d times (the first run: %d)", second.writes, writes)
	}
}

func TestResyncAndReplayCompareWithBackend(t *testing.T) {
	for name, trigger := range map[string]func(b *testStreams){
		"at every resync":          func(*testStreams) {},
		"when a state is replayed": func(b *testStreams) { b.replay("a") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestStreams(t)
			b.publish("a", "g", 1)
			b.snapshot(1)
			resync := time.Hour
			if name == "at every resync" {
				resync = 100 * time.Millisecond
			}
			s := b.start(b.js, func(c *controller.Config) { c.Resync = resync })
			var thorough atomic.Int32
			s.set(func(_ context.Context, pass *controller.Request[string]) error {
				if pass.Resync {
					thorough.Add(1)
				}
				return nil
			})
			b.awake()
			trigger(b)
			eventually(t, func() error {
				if thorough.Load() == 0 {
					return errors.New("no thorough pass")
				}
				return nil
			})
		})
	}
}

func TestResultIsReportedOncePerGeneration(t *testing.T) {
	for name, c := range map[string]struct {
		generation int64
		want       string
	}{
		"the generation is the same":     {generation: 7, want: "1"},
		"a kind that has no generations": {generation: 0, want: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestStreams(t)
			b.snapshot(0)
			s := b.start(b.js)
			for version := 1; version <= 2; version++ {
				b.publish("a", "g", version, func(change *event.Change) { change.Generation = c.generation })
				s.becomes(t, "g", fmt.Sprintf("a@%d ", version))
			}
			b.settled()
			stream, err := b.js.Stream(t.Context(), topology.Results)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, func() error {
				m, err := stream.GetLastMsgForSubject(t.Context(), topology.ResultSubject("test", storeKey("a")))
				if err != nil {
					return err
				}
				var result eventv1.ResourceResult
				if err := proto.Unmarshal(m.Data, &result); err != nil {
					return err
				}
				if result.GetResourceVersion() != c.want {
					return fmt.Errorf("the newest result is of version %s, want %s", result.GetResourceVersion(), c.want)
				}
				return nil
			})
		})
	}
}
