package reflector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestStartPublishesObjectsThenMarker(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	for i := range 25 {
		c.apply(fmt.Sprint("store.", i), "v1", "")
	}
	b.run(b.config(c))
	b.becomes(c)
	m, err := b.marker()
	if err != nil {
		t.Fatal(err)
	}
	if m.GetCount() != 25 || m.GetResourceVersion() != "125" || m.GetLastSequence() != 25 || m.GetEpoch() != "epoch" || !m.GetServed() {
		t.Errorf("marker is %v", m)
	}
}

func TestInsignificantChangeIsNotPublished(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	b.run(b.config(c))
	b.becomes(c)
	for i := range 10 {
		c.apply("a", "v1", fmt.Sprint("status ", i))
	}
	c.apply("b", "v1", "")
	b.becomes(c)
	c.apply("a", "v2", "status 9")
	b.becomes(c)
	c.remove("b")
	b.becomes(c)
	if got := b.quiet(); got != 4 {
		t.Errorf("%d messages for 4 changes that mean something", got)
	}
	last, err := b.p.LastChange(t.Context(), c.key("b"))
	if err != nil || !last.Change.Deleted || !strings.Contains(string(last.Change.Object), `"spec":"v1"`) {
		t.Errorf("deletion is %+v, %v; want it with the last state", last.Change, err)
	}
	msg, err := b.stream(topology.Changes).GetMsg(t.Context(), last.Sequence)
	if err != nil || msg.Header.Get(jetstream.MsgTTLHeader) != "1h0m0s" {
		t.Errorf("TTL of a deletion is %q (%v)", msg.Header.Get(jetstream.MsgTTLHeader), err)
	}
}

func TestRestartPublishesDifferencesOnly(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	for i := range 30 {
		c.apply(fmt.Sprint(i), "v1", "")
	}
	stop := b.run(b.config(c))
	b.becomes(c)
	before := b.quiet()
	stop()
	c.apply("1", "v1", "a status that nobody reads")
	c.apply("2", "v2", "")
	c.remove("3")
	c.remove("4")
	c.apply("4", "v1", "")
	c.apply("new", "v1", "")
	b.run(b.config(c))
	b.becomes(c)
	if got := b.quiet() - before; got != 5 {
		t.Errorf("%d messages for 4 differences and the tombstone of what was made again", got)
	}
	last, err := b.p.LastChange(t.Context(), c.key("3"))
	if err != nil || last.Version != fmt.Sprint(c.version) || !strings.Contains(string(last.Change.Object), "v1") {
		t.Errorf("missed deletion is %+v, %v; want the last state at the version of the list", last.Change, err)
	}
}

func TestExpiredWatchIsRelisted(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	for i := range 15 {
		c.apply(fmt.Sprint(i), "v1", "")
	}
	b.run(b.config(c))
	b.becomes(c)
	c.set(func(c *fakeSource) {
		c.down = true
	})
	c.interrupt()
	c.remove("7")
	c.apply("8", "v2", "")
	c.forget()
	c.set(func(c *fakeSource) { c.down = false })
	b.becomes(c)
}

func TestReplacedObjectsGetTombstones(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	uids := func() (found []string) {
		for _, head := range b.tombstones("x") {
			found = append(found, head.UID)
		}
		return found
	}
	c.apply("x", "v1", "")
	first := c.uid("x")
	b.run(b.config(c))
	b.becomes(c)
	c.remove("x")
	c.apply("x", "v1", "")
	second := c.uid("x")
	b.becomes(c)
	if got := uids(); !slices.Equal(got, []string{first}) {
		t.Fatalf("tombstones of %v, want that of %s", got, first)
	}
	b.stop()
	told := c.told
	c.apply("x", "v2", "") // This state is newer than the published one of the second.
	c.remove("x")
	c.apply("x", "v1", "")
	third := c.uid("x")
	c.remove("x")
	c.apply("x", "v1", "")
	eventually(t, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if got := c.told - told; got < 5 {
			return fmt.Errorf("%d events taken", got)
		}
		return nil
	})
	b.start()
	b.becomes(c)
	if got := uids(); !slices.Equal(got, []string{first, second, third}) {
		t.Fatalf("tombstones of %v, want those of %s, %s, %s", got, first, second, third)
	}
	if object := string(b.tombstones("x")[1].Change.Object); !strings.Contains(object, "v2") {
		t.Errorf("the last state of the second is %s", object)
	}
}

func TestRestartPublishesTombstonesOfReplacedObjects(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("x", "v1", "")
	first := c.uid("x")
	stop := b.run(b.config(c))
	b.becomes(c)
	stop()
	c.remove("x")
	c.apply("x", "v1", "")
	b.run(b.config(c))
	b.becomes(c)
	if got := b.tombstones("x"); len(got) != 1 || got[0].UID != first || !strings.Contains(string(got[0].Change.Object), "v1") {
		t.Errorf("tombstones are %+v, want that of %s", got, first)
	}
}

func TestInterruptedWatchResumesWithoutRelist(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	b.run(b.config(c))
	b.becomes(c)
	pages := c.pages
	c.set(func(c *fakeSource) { c.down = true })
	c.interrupt()
	c.apply("a", "v2", "")
	c.remove("b")
	c.set(func(c *fakeSource) { c.down = false })
	b.becomes(c)
	if c.pages != pages {
		t.Errorf("%d pages listed again", c.pages-pages)
	}
}

func TestUnservedKindIsAwaited(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.unserved = true
	b.run(b.config(c))
	eventually(t, func() error {
		if m, err := b.marker(); err != nil || m.GetServed() || m.GetCount() != 0 {
			return fmt.Errorf("marker is %v, %w", m, err)
		}
		return nil
	})
	c.apply("a", "v1", "")
	c.set(func(c *fakeSource) { c.unserved = false })
	b.becomes(c)
	c.set(func(c *fakeSource) { clear(c.objects); c.unserved = true })
	c.interrupt()
	b.becomes(c)
	if last, err := b.p.LastChange(t.Context(), c.key("a")); err != nil || !last.Deleted {
		t.Errorf("object of a kind that is gone is %+v, %v; want a deletion", last, err)
	}
}

func TestDamagedStreamIsRepaired(t *testing.T) {
	for name, harm := range map[string]func(ctx context.Context, b *testNATS) error{
		"purged":           func(ctx context.Context, b *testNATS) error { return b.stream(topology.Changes).Purge(ctx) },
		"deleted":          func(ctx context.Context, b *testNATS) error { return b.js.DeleteStream(ctx, topology.Changes) },
		"deleted with all": deleteAll,
		"replaced":         replace,
		"markers purged":   func(ctx context.Context, b *testNATS) error { return b.stream(topology.Sync).Purge(ctx) },
		"markers deleted":  func(ctx context.Context, b *testNATS) error { return b.js.DeleteStream(ctx, topology.Sync) },
		"marker overwritten": func(ctx context.Context, b *testNATS) error {
			return occupySubject(ctx, b, topology.MarkerSubject("local", kinds.Stores().GroupResource))
		},
		"a message deleted":                func(ctx context.Context, b *testNATS) error { return b.stream(topology.Changes).DeleteMsg(ctx, 2) },
		"a subject purged":                 purgeOne,
		"made to hold one message":         func(ctx context.Context, b *testNATS) error { return limitStreamToOneMessage(ctx, b, topology.Changes) },
		"markers made to hold one message": func(ctx context.Context, b *testNATS) error { return limitStreamToOneMessage(ctx, b, topology.Sync) },
		"replaced by one of other limits": func(ctx context.Context, b *testNATS) error {
			config := b.stream(topology.Changes).CachedInfo().Config
			config.MaxMsgs = 1
			err := b.js.DeleteStream(ctx, topology.Changes)
			_, made := b.js.CreateStream(ctx, config)
			return errors.Join(err, made)
		},
		"a subject malformed": func(ctx context.Context, b *testNATS) error {
			return occupySubject(ctx, b, topology.ChangeSubject(newFakeSource().key("1")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := newTestNATS(t), newFakeSource()
			for i := range 3 {
				c.apply(fmt.Sprint(i), "v1", "")
			}
			b.run(b.config(c))
			b.becomes(c)
			if err := harm(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			c.apply("later", "v1", "")
			b.becomes(c)
		})
	}
}

// A stream restored from a backup holds old states, and objects that were deleted since then.
func TestRestoredStreamBackupIsRepaired(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	const many = 200 // With so many, random probes would need half a minute to find the changed one.
	for i := range many {
		c.apply(fmt.Sprint(i), "v1", "")
	}
	cfg := b.config(c)
	cfg.CheckInterval = 200 * time.Millisecond
	b.run(cfg)
	b.becomes(c)
	for what, change := range map[string]func(){
		"a deletion":   func() { c.remove("7") },
		"a change":     func() { c.apply("8", "v2", "") },
		"a new object": func() { c.apply("new", "v1", "") },
	} {
		t.Log(what)
		b.stop()
		backup := t.TempDir()
		if err := os.CopyFS(backup, os.DirFS(b.dir)); err != nil {
			t.Fatal(err)
		}
		b.start()
		change()
		b.becomes(c)
		b.stop()
		b.dir = backup
		b.start()
		b.becomes(c)
	}
}

func deleteAll(ctx context.Context, b *testNATS) error {
	var errs []error
	for _, stream := range []string{topology.Changes, topology.Sync, topology.Results, topology.DeadLetters} {
		errs = append(errs, b.js.DeleteStream(ctx, stream))
	}
	return errors.Join(errs...)
}

func replace(ctx context.Context, b *testNATS) error {
	return errors.Join(b.js.DeleteStream(ctx, topology.Changes), topology.EnsureStreams(ctx, b.js, 1))
}

// limitStreamToOneMessage makes a stream hold one message.
func limitStreamToOneMessage(ctx context.Context, b *testNATS, stream string) error {
	config := b.stream(stream).CachedInfo().Config
	config.MaxMsgs = 1
	_, err := b.js.UpdateStream(ctx, config)
	return err
}

func TestEveryStreamIsRestored(t *testing.T) {
	for name, harm := range map[string]func(ctx context.Context, b *testNATS, stream string) error{
		"deleted":                  func(ctx context.Context, b *testNATS, stream string) error { return b.js.DeleteStream(ctx, stream) },
		"made to hold one message": limitStreamToOneMessage,
	} {
		for _, stream := range []string{topology.Changes, topology.Sync, topology.Results, topology.DeadLetters} {
			t.Run(stream+" "+name, func(t *testing.T) {
				b, c := newTestNATS(t), newFakeSource()
				c.apply("a", "v1", "")
				b.run(b.config(c))
				b.becomes(c)
				if err := harm(t.Context(), b, stream); err != nil {
					t.Fatal(err)
				}
				eventually(t, func() error { return topology.CheckStreams(t.Context(), b.js) })
				b.becomes(c)
			})
		}
	}
}

func TestTooManyReplicasEndWatcherWithRemedy(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	if err := b.js.DeleteStream(t.Context(), topology.Results); err != nil {
		t.Fatal(err)
	}
	cfg := b.config(c)
	cfg.StreamReplicas = 3
	if err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "use --stream-replicas=1 or a cluster") {
		t.Fatalf("ended with %v", err)
	}
}

func purgeOne(ctx context.Context, b *testNATS) error {
	return b.stream(topology.Changes).Purge(ctx, jetstream.WithPurgeSubject(topology.ChangeSubject(newFakeSource().key("0"))))
}

func occupySubject(ctx context.Context, b *testNATS, subject string) error {
	_, err := b.js.Publish(ctx, subject, []byte("not protobuf"))
	return err
}

func TestResyncRelistsEverything(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	cfg := b.config(c)
	cfg.Resync = 100 * time.Millisecond
	b.run(cfg)
	b.becomes(c)
	quiet := b.quiet()
	c.set(func(c *fakeSource) { delete(c.objects, "a") }) // No watch reports it.
	b.becomes(c)
	if got := b.quiet(); got != quiet+1 {
		t.Errorf("%d messages for one deletion", got-quiet)
	}
}

func TestTombstoneReplacesRefusedMessageWithoutObject(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	if err := occupySubject(t.Context(), b, topology.ChangeSubject(c.key("ghost"))); err != nil {
		t.Fatal(err)
	}
	b.run(b.config(c))
	b.becomes(c)
	if last, err := b.p.LastChange(t.Context(), c.key("ghost")); err != nil || !last.Deleted {
		t.Errorf("last of the ghost: %+v, %v, want a tombstone", last, err)
	}
}

func TestStreamOfOtherClusterIsRefused(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	stop := b.run(b.config(c))
	b.becomes(c)
	stop()
	other := newFakeSource()
	other.epoch = "another"
	if err := Run(t.Context(), b.config(other)); !errors.Is(err, ErrForeign) {
		t.Fatalf("error is %v, want ErrForeign", err)
	}
	b.becomes(c)
}

func TestNATSOutageDoesNotLoseChange(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	for i := range 20 {
		c.apply(fmt.Sprint(i), "v1", "")
	}
	b.run(b.config(c))
	b.becomes(c)
	b.stop()
	for i := range 10 {
		c.apply(fmt.Sprint(i), "v2", "")
		c.apply(fmt.Sprint("new", i), "v1", "")
		c.remove(fmt.Sprint(10 + i))
		c.apply(fmt.Sprint("new", i), "v2", "")
	}
	b.start()
	b.becomes(c)
}

func TestBacklogLimitPausesWatch(t *testing.T) {
	const size, count = 512 << 10, 150
	b, c := newTestNATS(t), newFakeSource()
	c.apply("small", "v1", "")
	b.run(b.config(c))
	b.becomes(c)
	b.stop()
	told, spec := c.told, strings.Repeat("x", size)
	for i := range count {
		c.apply(fmt.Sprint(i), spec, "")
	}
	eventually(t, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if got := c.told - told; got < backlogBytes/size-1 {
			return fmt.Errorf("%d events taken", got)
		}
		return nil
	})
	<-time.After(100 * time.Millisecond)
	c.set(func(c *fakeSource) {
		if got := c.told - told; got > backlogBytes/size {
			t.Errorf("%d events of %d bytes taken, the bound is %d bytes", got, size, backlogBytes)
		}
	})
	b.start()
	eventually(t, func() error { // To compare reads all bodies, which keeps the publication waiting.
		if m, err := b.marker(); err != nil || m.GetCount() <= count {
			return fmt.Errorf("the marker is %v, %w", m, err)
		}
		return nil
	})
	b.becomes(c)
}

func TestChangeStartsTrace(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	cfg := b.config(c)
	provider := trace.NewTracerProvider()
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	cfg.Tracer = provider
	b.run(cfg)
	b.becomes(c)
	last, err := b.p.LastChange(t.Context(), c.key("a"))
	if err != nil || len(last.Change.Traceparent) != 55 {
		t.Errorf("traceparent is %q (%v)", last.Change.Traceparent, err)
	}
}

func TestConcurrentReflectorsConverge(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	var stops []func()
	for range 2 {
		stops = append(stops, b.run(b.config(c)))
	}
	for i := range 300 {
		name := fmt.Sprint(i % 7)
		if i%5 == 4 {
			c.remove(name)
		} else {
			c.apply(name, fmt.Sprint("v", i), "")
		}
		switch i {
		case 100:
			stops[0]()
		case 150:
			b.run(b.config(c))
		case 200:
			stops[1]()
		}
		<-time.After(time.Millisecond)
	}
	b.becomes(c)
}
