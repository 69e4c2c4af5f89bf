package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/internal/topology"
)

// startReplica starts a replica and returns its elector.
func (b *testStreams) startReplica() (*runningEngine, *leader.Elector) {
	s := b.start(b.connect())
	return s, b.elector
}

func held(elector *leader.Elector) error {
	_, err := elector.LeaseRemaining()
	return err
}

func TestLostTermNaksMessages(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	replica, elector := b.startReplica()
	eventually(t, func() error { return held(elector) })
	overtaken := errors.New("overtaken")
	replica.set(func(ctx context.Context, _ *controller.Request[string]) error {
		if _, err := b.js.Publish(ctx, topology.LeaseSubject("test"), []byte("another")); err != nil {
			return err
		}
		for held(elector) == nil {
			<-time.After(time.Millisecond)
		}
		replica.set(nil)
		return overtaken
	})
	b.publish("a", "g", 1)
	eventually(t, func() error { return replica.ran("g", 1) })
	eventually(t, func() error {
		if held(elector) == nil {
			return errors.New("it is sure although another has claimed the turn")
		}
		return nil
	})
	if err := replica.ran("g", 2); err == nil {
		t.Error("it went on")
	}
	eventually(t, func() error { // The server still sends messages to this replica, so it becomes the leader again.
		if got := replica.holds("g"); got != "a@1 " {
			return fmt.Errorf("it holds %q", got)
		}
		return held(elector)
	})
}

// Until its last lease expires, a former leader may still write. The next leader must wait for this too.
func TestTermAfterStreamReplacementWaitsForLease(t *testing.T) {
	for name, before := range map[string]int{
		"begun by a message":               1,
		"after the last claim was refused": 0,
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestStreams(t)
			b.snapshot(0)
			replica, elector := b.startReplica()
			eventually(t, func() error { return held(elector) })
			if err := b.js.DeleteStream(t.Context(), topology.Changes); err != nil {
				t.Fatal(err)
			}
			gone := time.Now()
			if err := topology.EnsureStreams(t.Context(), b.js, 1); err != nil {
				t.Fatal(err)
			}
			for i := range before {
				b.publish("b", fmt.Sprint("h", i), 1)
			}
			eventually(t, func() error {
				if held(elector) == nil {
					return errors.New("it is sure of a turn that nobody knows")
				}
				return nil
			})
			b.publish("a", "g", 1)
			b.snapshot(before + 1)
			eventually(t, func() error { return replica.ran("g", 1) })
			if waited := time.Since(gone); waited < takeover.LeaseLifetime {
				t.Errorf("it went on after %s", waited)
			}
		})
	}
}

func TestStandbyDoesNotReconcile(t *testing.T) {
	b := newTestStreams(t)
	b.publish("a", "g", 1)
	b.snapshot(1)
	active, elector := b.startReplica()
	eventually(t, func() error { return held(elector) })
	eventually(t, func() error { return active.ran("g", 1) })
	standby, _ := b.startReplica()
	eventually(t, func() error { return standby.view.IncompleteErr() })
	b.snapshot(7) // The count differs from the informer's count, so the informer loads the stream again.
	eventually(t, func() error {
		if standby.reloads.Load() == 0 {
			return errors.New("not read again")
		}
		return nil
	})
	b.publish("b", "h", 2)
	eventually(t, func() error { return active.ran("h", 1) })
	if err := standby.ran("g", 1); err == nil {
		t.Error("the standby has made a pass")
	}
}

// A standby whose informer has stopped must not decide from it. It would restore the old model.
func TestTermBeginsAfterInformerCatchesUp(t *testing.T) {
	b := newTestStreams(t)
	b.publish("a", "old", 1)
	b.snapshot(1)
	active, elector := b.startReplica()
	eventually(t, func() error { return held(elector) })
	var log concurrentLog
	standby := b.start(b.connect(), func(c *controller.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	eventually(t, func() error { return standby.view.IncompleteErr() })
	resumed := make(chan struct{})
	resume := sync.OnceFunc(func() { close(resumed) })
	t.Cleanup(resume)
	standby.hold(resumed)
	b.publish("b", "b", 2) // The informer of the standby stops at this change.
	eventually(t, func() error { return active.ran("b", 1) })
	b.publish("a", "new", 3)
	eventually(t, func() error {
		if got := active.holds("new"); got != "a@3 " {
			return fmt.Errorf("the active one holds %q", got)
		}
		return nil
	})
	active.stop()
	b.publish("c", "c", 4)
	eventually(t, func() error {
		if err := standby.ran("old", 1); err == nil {
			t.Fatal("it decided from an old view")
		}
		if !strings.Contains(log.String(), "term not begun; trying again") {
			return errors.New("it has not found out that its view is old")
		}
		return nil
	})
	resume()
	eventually(t, func() error {
		if got := standby.holds("new"); got != "a@3 " {
			return fmt.Errorf("the standby holds %q", got)
		}
		return nil
	})
	if got := standby.holds("old"); got != "" {
		t.Errorf("under the old group it wrote %q", got)
	}
}

// hold blocks the informer at the next change until resume is closed.
func (s *runningEngine) hold(resume chan struct{}) {
	s.held.Store(&resume)
}

func (s *runningEngine) heldUp(event.Key) {
	if resume := s.held.Load(); resume != nil {
		<-*resume
	}
}

// ran returns an error unless a group was reconciled at least some times.
func (g *groupBackend) ran(group string, some int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.passes[group]; n < some {
		return fmt.Errorf("%d passes of %s", n, group)
	}
	return nil
}
