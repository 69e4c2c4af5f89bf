package informer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestInformerIsIncompleteBeforeMarkersOfAllKinds(t *testing.T) {
	b := newTestStreams(t)
	last := b.put(change("a", 1), change("b", 2))
	f := b.feed()
	f.incomplete(t, "b")
	b.mark(kinds.Roles(), 0, last) // of a kind that this informer does not hold
	b.mark(kinds.Stores(), 2, last, func(m *eventv1.SnapshotMarker) { m.Stream = "another life of the stream" })
	last = b.put(change("c", 3))
	f.incomplete(t, "c")
	b.mark(kinds.Stores(), 3, last)
	f.await(t, "a b c ")
	if f.reloads.Load() != 0 {
		t.Error("the first load is no reload")
	}
}

// wait waits until a channel is closed.
func wait(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestInformerWaitsForSequenceOfMarker(t *testing.T) {
	b := newTestStreams(t)
	b.put(change("a", 1))
	read := make(chan struct{})
	f := b.feed(func(c *informer.Config) {
		c.FetchLargeObject = func(ctx context.Context, _ event.Key) ([]byte, error) { return []byte(`{}`), wait(ctx, read) }
	})
	f.incomplete(t, "a")
	b.mark(kinds.Stores(), 2, b.put(change("b", 2, func(c *event.Change) { c.Omitted, c.Object = true, nil })))
	f.eventually(t, func() error {
		if err := f.IncompleteErr(); err == nil || !strings.Contains(err.Error(), "read up to") {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	close(read)
	f.await(t, "a b ")
}

func TestEmptyStreamIsCompleteWithMarkers(t *testing.T) {
	b := newTestStreams(t)
	f := b.feed()
	b.mark(kinds.Stores(), 0, 0)
	f.await(t, "")
}

func TestInformerIgnoresMarkerOfPurgedObjects(t *testing.T) {
	b := newTestStreams(t)
	b.put(change("a", 1))
	last := b.put(change("b", 2))
	b.mark(kinds.Stores(), 1, last)
	b.must(b.RemoveMessage(t.Context(), last))
	b.feed().await(t, "a ")
}

func TestFeedSkipsUndecodableObjects(t *testing.T) {
	b := newTestStreams(t)
	b.raw("entail.changes.c.core%2Eplatform-mesh%2Eio.stores.no.name.at.all", "\xff")
	b.put(change("shapeless", 1, tags(`{"tags":1}`)))
	b.raw(topology.MarkerSubject("c", kinds.Stores().GroupResource), "\xff")
	last := b.put(change("a", 2))
	f := b.feed()
	f.incomplete(t, "a")
	b.mark(kinds.Stores(), 1, last)
	f.await(t, "a ")
}

func TestFeedRetriesLargeObject(t *testing.T) {
	b := newTestStreams(t)
	omitted := func(c *event.Change) { c.Omitted, c.Object = true, nil }
	last := b.put(change("a", 1, omitted), change("b", 2), change("refused", 3, omitted), change("c", 4))
	b.mark(kinds.Stores(), 3, last)
	tried, back := make(chan struct{}, 100), make(chan struct{})
	f := b.feed(func(c *informer.Config) {
		c.FetchLargeObject = func(_ context.Context, k event.Key) ([]byte, error) {
			if k.Name == "refused" {
				return nil, fault.Terminal(errors.New("nobody can read this"))
			}
			select {
			case <-back:
				return []byte(`{"tags":["large"]}`), nil
			default:
				tried <- struct{}{}
				return nil, fault.Unavailable(errors.New("the API server is away"))
			}
		}
	})
	<-tried
	<-tried
	if err := f.IncompleteErr(); !errors.Is(err, informer.ErrIncomplete) || !strings.Contains(err.Error(), "cannot be stored: read large object") ||
		!strings.Contains(err.Error(), "the API server is away") {
		t.Errorf("while an object cannot be read it says %v", err)
	}
	close(back)
	f.await(t, "a b c ")
	if err := f.IncompleteErr(); err != nil {
		t.Errorf("once it can be read it says %v", err)
	}
	if got := names(f.stores.ListByIndex("tag", "large")); got != "a " {
		t.Errorf("large are %q", got)
	}
}

func TestInformerDoesNotNeedMarkerForUnmarkedKinds(t *testing.T) {
	b := newTestStreams(t)
	secret := change("s", 3, func(c *event.Change) { c.Key.GroupResource, c.Key.Namespace = kinds.Secrets().GroupResource, "n" })
	last := b.put(change("a", 1), secret)
	f := b.feedOf([]kinds.Kind{kinds.Secrets(), kinds.Roles()})
	b.mark(kinds.Stores(), 1, last)
	f.incomplete(t, "a")
	b.mark(kinds.Roles(), 0, last)
	f.await(t, "a ")
	if !f.HasLive(secret.Key) {
		t.Error("what has no marker is not held")
	}
}

func TestReloadKeepsOldContentUntilComplete(t *testing.T) {
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 2, b.put(change("a", 1), change("gone", 2)))
	reading, whole := make(chan struct{}, 100), make(chan struct{})
	f := b.feed(func(c *informer.Config) {
		c.FetchLargeObject = func(ctx context.Context, _ event.Key) ([]byte, error) {
			reading <- struct{}{}
			return []byte(`{}`), wait(ctx, whole)
		}
	})
	f.await(t, "a gone ")
	b.replace()
	last := b.put(change("a", 1), change("large", 3, func(c *event.Change) { c.Omitted, c.Object = true, nil }))
	b.mark(kinds.Stores(), 2, last)
	<-reading
	if got := names(f.stores.All()); got != "a gone " {
		t.Errorf("while it is read anew the view shows %q", got)
	}
	if err := f.IncompleteErr(); !errors.Is(err, informer.ErrIncomplete) {
		t.Errorf("while it is read anew it says %v", err)
	}
	close(whole)
	f.await(t, "a large ")
	f.eventually(t, func() error {
		if f.reloads.Load() == 0 {
			return errors.New("nobody was told of the reload")
		}
		return nil
	})
}

func TestReloadKeepsOwnWrites(t *testing.T) {
	b := newTestStreams(t)
	last := b.put(change("a", 1), change("b", 1))
	b.mark(kinds.Stores(), 2, last)
	f := b.feed()
	f.await(t, "a b ")
	now := func(c *event.Change) { c.ObservedAt = time.Now() }
	apply(t, f.Informer, change("a", 2, tags(`{"tags":["written"]}`)), change("b", 2, deleted, now))
	changes := f.stores.ChangeCount()
	b.mark(kinds.Stores(), 2, last) // Now the number differs from the informer's objects.
	f.eventually(t, func() error {
		if f.reloads.Load() == 0 {
			return errors.New("not read again")
		}
		return f.complete()
	})
	if o, _ := f.stores.Get(key("a")); o.ResourceVersion != "2" || names(f.stores.ListByIndex("tag", "written")) != "a " {
		t.Errorf("what was written is at version %s", o.ResourceVersion)
	}
	if _, ok := f.stores.Tombstone(key("b")); !ok {
		t.Error("that it was deleted is forgotten")
	}
	if f.stores.ChangeCount() <= changes {
		t.Error("what was read anew counts as no change")
	}
}

func TestTombstonesExpireWithStream(t *testing.T) {
	b := newTestStreams(t)
	at := func(age time.Duration) func(*event.Change) {
		return func(c *event.Change) { c.Deleted, c.ObservedAt = true, time.Now().Add(-age) }
	}
	for _, c := range []event.Change{change("young", 1, at(time.Hour)), change("old", 2, at(topology.TombstoneTTL+time.Hour))} {
		data, err := c.Marshal()
		b.must(err)
		_, err = b.js.PublishMsg(t.Context(), &nats.Msg{Subject: topology.ChangeSubject(c.Key), Header: topology.ChangeHeaders(c), Data: data})
		b.must(err) // without a TTL
	}
	last := b.put(change("a", 3))
	b.mark(kinds.Stores(), 1, last)
	f := b.feed()
	f.await(t, "a ")
	if got := names(f.stores.TombstonesByIndex("tag", "x")); got != "young " {
		t.Errorf("remembered are %q", got)
	}
}

func TestFeedOfOneClusterSkipsOthers(t *testing.T) {
	b := newTestStreams(t)
	elsewhere := func(c *event.Change) { c.Key.Cluster = "other" }
	b.mark(kinds.Stores(), 1, b.put(change("b", 1, elsewhere), change("a", 2)))
	f := b.feed(func(c *informer.Config) { c.Cluster = "c" })
	f.await(t, "a ")
	if n := len(f.Keys()); n != 1 {
		t.Errorf("%d objects are held", n)
	}
}

func TestSnapshotCoversOneCluster(t *testing.T) {
	b := newTestStreams(t)
	elsewhere := func(c *event.Change) { c.Key.Cluster = "other" }
	theirs := func(m *eventv1.SnapshotMarker) { m.Cluster = "other" }
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	f := b.feed()
	f.await(t, "a ")
	b.others = testenv.NewBarrierWriter(b.Publisher, "other")
	f.eventually(t, func() error {
		b.must(b.others.Write(t.Context(), 0))
		if err := f.IncompleteErr(); err == nil || !strings.Contains(err.Error(), `in cluster "other"`) {
			return fmt.Errorf("a cluster whose watcher is at work: %w", err)
		}
		return nil
	})
	b.mark(kinds.Stores(), 2, b.put(change("b", 2, elsewhere), change("c", 3, elsewhere)), theirs)
	f.await(t, "a b c ")
	b.mark(kinds.Stores(), 1, b.put(change("a", 4)))
	b.mark(kinds.Stores(), 2, b.put(change("c", 5, elsewhere)), theirs)
	late := b.feed()
	late.await(t, "a b c ")
	if f.reloads.Load() != 0 || late.reloads.Load() != 0 {
		t.Errorf("read again %d and %d times, although no number is wrong", f.reloads.Load(), late.reloads.Load())
	}
	b.mark(kinds.Stores(), 1, 0)
	b.mark(kinds.Stores(), 3, 0, theirs) // The objects of this marker are missing.
	f.eventually(t, func() error {
		if f.reloads.Load() == 0 {
			return errors.New("not read again")
		}
		return f.complete()
	})
}

// The watcher counts the objects when it starts. A service that starts later holds other numbers of every kind.
func TestLateInformerReadsStreamOnce(t *testing.T) {
	b := newTestStreams(t)
	others := []kinds.Kind{kinds.Roles(), kinds.ImpliedRoles(), kinds.RoleBindings(), kinds.ClusterRoleBindings()}
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	for i, kind := range others {
		b.mark(kind, 1, b.put(change("first", 2+i, func(c *event.Change) { c.Key.GroupResource = kind.GroupResource })))
	}
	b.put(change("b", 10), change("c", 11))
	for i, kind := range others {
		b.put(change("second", 20+i, func(c *event.Change) { c.Key.GroupResource = kind.GroupResource }))
	}
	f := b.feedOf(others)
	f.await(t, "a b c ")
	b.put(change("d", 30))
	f.await(t, "a b c d ")
	if n := f.reloads.Load(); n != 0 {
		t.Errorf("the stream was read %d times more", n)
	}
}

func TestRevisionNamesPositionInStream(t *testing.T) {
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	f := b.feed()
	f.await(t, "a ")
	first := f.Revision()
	b.put(change("b", 2))
	f.await(t, "a b ")
	var second string
	f.eventually(t, func() error { // The new content is visible before the load counts as finished.
		if second = f.Revision(); second == first {
			return errors.New("it still is at " + first)
		}
		return nil
	})
	b.replace()
	b.mark(kinds.Stores(), 2, b.put(change("a", 1), change("b", 2)))
	f.eventually(t, func() error {
		if f.reloads.Load() == 0 {
			return errors.New("not read again")
		}
		return f.complete()
	})
	if third := f.Revision(); second == third {
		t.Errorf("%s in both lives", second)
	}
}

// A server may answer requests and yet lag behind the other servers for ever.
func TestStuckFeedIsRestarted(t *testing.T) {
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	f := b.feed()
	f.await(t, "a ")
	stream, err := b.js.Stream(t.Context(), topology.Changes)
	b.must(err)
	feeding := stream.ConsumerNames(t.Context())
	for name := range feeding.Name() {
		_, err := b.js.PauseConsumer(t.Context(), topology.Changes, name, time.Now().Add(time.Hour))
		b.must(err)
	}
	b.must(feeding.Err())
	b.mark(kinds.Stores(), 2, b.put(change("b", 2)))
	f.eventually(t, func() error {
		b.beat(0) // The informer receives this barrier.
		if err := f.IncompleteErr(); err == nil || !strings.Contains(err.Error(), "no message of the stream of changes was received") {
			return fmt.Errorf("the view is old, and says %w", err)
		}
		if age := f.Staleness(); age < 6*time.Second {
			t.Errorf("nothing was heard for six seconds, and the age is %s", age)
		}
		return nil
	})
	// This takes longer than other conditions.
	for end := time.Now().Add(3 * soon); f.reloads.Load() == 0 && time.Now().Before(end); {
		<-time.After(5 * time.Millisecond)
	}
	f.await(t, "a b ")
}

func TestInformerIsCompleteAfterBarrierWrittenDuringLoad(t *testing.T) {
	b := newTestStreams(t)
	b.beat(0)
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	f := b.feed()
	f.incomplete(t, "a")
	f.eventually(t, func() error {
		if err := f.IncompleteErr(); err == nil || !strings.Contains(err.Error(), "no barrier of cluster") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	if age := f.Staleness(); age != math.MaxInt64 {
		t.Errorf("the age is %s by a barrier from before the load", age)
	}
	b.beat(0)
	f.eventually(t, f.IncompleteErr)
}

func TestStalenessFollowsLastBarrier(t *testing.T) {
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	f := b.feed()
	f.await(t, "a ")
	for _, behind := range []time.Duration{time.Hour, 0, time.Minute} {
		b.beat(behind)
		f.eventually(t, func() error {
			if over := f.Staleness() - behind; over < 0 || over > 2*soon {
				return fmt.Errorf("age is %s, want about %s", f.Staleness(), behind)
			}
			return nil
		})
	}
}

func TestCheckCurrentFailsWithoutSnapshot(t *testing.T) {
	b := newTestStreams(t)
	b.put(change("a", 1))
	f := b.feed()
	f.incomplete(t, "a")
	f.eventually(t, func() error {
		b.beat(0)
		if f.Staleness() > time.Second {
			return errors.New("no barrier was read")
		}
		return nil
	})
	if err := f.CheckCurrent(t.Context()); !errors.Is(err, informer.ErrIncomplete) {
		t.Errorf("it lacks what it was told of, and says %v", err)
	}
}

func TestCheckCurrentFailsWithoutWatcher(t *testing.T) {
	b := newTestStreams(t)
	at := b.put(change("a", 1))
	b.mark(kinds.Stores(), 1, at)
	f := b.feed()
	f.await(t, "a ")
	current := func() error { return f.CheckCurrent(t.Context()) }
	beat := func() error {
		b.beat(0)
		return current()
	}
	for range 2 {
		f.eventually(t, beat)
		// After this, the barrier is too old.
		f.eventually(t, func() error {
			if current() == nil {
				return errors.New("it still is")
			}
			return nil
		})
	}
	f.eventually(t, beat)
	b.put(change("b", 2))
	if err := current(); err != nil {
		t.Error(err)
	}
	if _, ok := f.stores.Get(key("b")); !ok {
		t.Error("it is current, and lacks what the stream has")
	}
}
