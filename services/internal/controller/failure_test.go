package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestStandbyTakesOverFromLeader(t *testing.T) {
	for name, end := range map[string]func(s *runningEngine, js jetstream.JetStream){
		"after a drain": func(s *runningEngine, _ jetstream.JetStream) { s.stop() },
		"after a crash": func(_ *runningEngine, js jetstream.JetStream) { js.Conn().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestStreams(t)
			b.snapshot(0)
			js := b.connect()
			first := b.start(js, func(c *controller.Config) { c.Grace = time.Second })
			b.publish("a", "g", 1)
			first.becomes(t, "g", "a@1 ")
			second := b.start(b.connect())
			eventually(t, second.view.IncompleteErr)
			for i := range 20 {
				b.publish("a", "g", i+2)
			}
			first.becomes(t, "g", "a@21 ")
			b.settled()
			if got := second.holds("g"); got != "" {
				t.Fatalf("the standby acted: %q", got)
			}
			end(first, js)
			b.publish("a", "g", 100)
			second.becomes(t, "g", "a@100 ")
		})
	}
}

func TestDrainResignsTerm(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	b.publish("a", "g", 1)
	s.becomes(t, "g", "a@1 ")
	pinned := func(i *jetstream.ConsumerInfo) bool { return i.PriorityGroups[0].PinnedClientID != "" }
	b.durable(pinned)
	s.stop()
	if pinned(b.durable(func(*jetstream.ConsumerInfo) bool { return true })) {
		t.Error("still pinned after the drain: the next replica would wait")
	}
}

func TestReplicaIsBoundWhileConsumerExists(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	var active, standby leader.ConsumerBinding
	one := b.start(b.connect(), func(c *controller.Config) { c.Binding = &active })
	b.publish("a", "g", 1)
	one.becomes(t, "g", "a@1 ")
	b.start(b.connect(), func(c *controller.Config) { c.Binding = &standby })
	eventually(t, standby.Err)
	if err := active.Err(); err != nil {
		t.Errorf("the active replica: %v", err)
	}
	if err := b.js.DeleteStream(t.Context(), topology.Changes); err != nil {
		t.Fatal(err)
	}
	for _, binding := range []*leader.ConsumerBinding{&active, &standby} {
		eventually(t, func() error {
			if binding.Err() == nil {
				return errors.New("bound to a durable that is gone")
			}
			return nil
		})
	}
	if err := topology.EnsureStreams(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, active.Err)
	eventually(t, standby.Err)
}

func TestDrainDoesNotWaitForUnreachableServer(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	const grace = 19 * time.Second
	s := b.start(b.connect(), func(c *controller.Config) { c.Grace = grace })
	b.publish("a", "g", 1)
	s.becomes(t, "g", "a@1 ")
	b.shutdown()
	stopped := make(chan struct{})
	go func() { s.stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(grace):
		t.Error("the drain takes all of its grace period")
	}
	b.boot()
	<-stopped
}

func TestShutdownFinishesPassesInProgress(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	b.awake()
	entered := make(chan struct{}, 1)
	s.set(func(ctx context.Context, _ *controller.Request[string]) error {
		entered <- struct{}{}
		<-time.After(200 * time.Millisecond)
		return ctx.Err()
	})
	b.publish("a", "g", 1)
	<-entered
	s.stop()
	if got := s.holds("g"); got != "a@1 " {
		t.Errorf("half-done work was cut: %q", got)
	}
	b.settled()
}

func TestEngineConvergesAfterStreamIsRecreated(t *testing.T) {
	b := newTestStreams(t)
	for i := range 30 {
		b.publish(fmt.Sprintf("n%02d", i), "g", i+1)
	}
	b.snapshot(30)
	s := b.start(b.js)
	b.settled()
	if err := b.js.DeleteStream(t.Context(), topology.Changes); err != nil {
		t.Fatal(err)
	}
	if err := topology.EnsureStreams(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	// The watcher publishes all existing objects. n00 was deleted in between, without a message.
	for i := 1; i < 3; i++ {
		b.publish(fmt.Sprintf("n%02d", i), "g", i+1)
	}
	b.snapshot(2)
	s.becomes(t, "g", "n01@2 n02@3 ")
	b.publish("n01", "g", 50)
	s.becomes(t, "g", "n01@50 n02@3 ")
}

func TestEngineConvergesAfterServerRestartAndNewStream(t *testing.T) {
	b := newTestStreams(t)
	for i := range 5 {
		b.publish(fmt.Sprintf("n%d", i), "g", i+1)
	}
	b.snapshot(5)
	s := b.start(b.js)
	s.becomes(t, "g", "n0@1 n1@2 n2@3 n3@4 n4@5 ")
	b.shutdown()
	b.boot()
	eventually(t, func() error { return b.js.DeleteStream(t.Context(), topology.Changes) })
	if err := topology.EnsureStreams(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	b.publish("n3", "g", 4)
	b.snapshot(1)
	s.becomes(t, "g", "n3@4 ")
	b.publish("n3", "g", 9)
	s.becomes(t, "g", "n3@9 ")
}

func TestEngineConvergesAfterPurge(t *testing.T) {
	b := newTestStreams(t)
	b.publish("a", "g", 1)
	b.publish("b", "g", 2)
	b.snapshot(2)
	s := b.start(b.js)
	s.becomes(t, "g", "a@1 b@2 ")
	stream, err := b.js.Stream(t.Context(), topology.Changes)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.publish("a", "g", 1) // b was deleted without a message.
	b.snapshot(1)
	s.becomes(t, "g", "a@1 ")
}

// A count that differs makes the informer load the stream only once, because later changes make the count differ
// permanently.
func TestMarkerWithWrongCountCausesOneReload(t *testing.T) {
	b := newTestStreams(t)
	b.publish("a", "g", 1)
	b.snapshot(99)
	s := b.start(b.js)
	eventually(t, func() error {
		if s.reloads.Load() == 0 {
			return errors.New("a count that differs was not followed")
		}
		return nil
	})
	for i := range 20 {
		b.publish("a", "g", i+2)
		s.becomes(t, "g", fmt.Sprintf("a@%d ", i+2))
		<-time.After(50 * time.Millisecond)
	}
	if got := s.reloads.Load(); got != 1 {
		t.Errorf("read again %d times, want 1", got)
	}
}

// The first load includes the changes between the last marker and the start.
func TestLateServiceReadsStreamOnce(t *testing.T) {
	b := newTestStreams(t)
	b.publish("a", "g", 1)
	b.snapshot(1)
	b.publish("b", "g", 2)
	s := b.start(b.js)
	s.becomes(t, "g", "a@1 b@2 ")
	for i := range 2 { // Each change causes another comparison with the marker.
		before := s.view.Revision()
		b.publish("c", "g", i+3)
		eventually(t, func() error {
			if s.view.Revision() == before {
				return errors.New("the change is not in the view")
			}
			return nil
		})
	}
	if got := s.reloads.Load(); got != 0 {
		t.Errorf("read again %d times, want 0", got)
	}
}

func TestLostResultsAreRepublishedWithoutWrite(t *testing.T) {
	b := newTestStreams(t)
	b.publish("a", "g", 1)
	b.snapshot(1)
	s := b.start(b.js)
	reported := func() error {
		stream, err := b.js.Stream(t.Context(), topology.Results)
		if err != nil {
			return err
		}
		_, err = stream.GetLastMsgForSubject(t.Context(), topology.ResultSubject("test", storeKey("a")))
		return err
	}
	eventually(t, reported)
	writes := s.count()
	if err := b.js.DeleteStream(t.Context(), topology.Results); err != nil {
		t.Fatal(err)
	}
	if err := topology.EnsureStreams(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, reported)
	if got := s.count(); got != writes {
		t.Errorf("%d writes, want none", got-writes)
	}
}
