package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestAuditCorrectsForgeryWithinOneSecond(t *testing.T) {
	for name, test := range forgedMessages() {
		t.Run(name, func(t *testing.T) {
			b, c := newTestNATS(t), newFakeSource()
			c.apply("a", "v1", "")
			c.apply("b", "v1", "")
			cfg := b.forgeryConfig(c)
			stop := b.run(cfg)
			b.becomes(c)
			b.forge(c.key("a"), test.edit)
			began := time.Now()
			b.corrects(cfg, test.cause, 1)
			if took := time.Since(began); took > time.Second {
				t.Errorf("the correction took %s", took)
			}
			b.staysRight(c, stop)
			if n := testutil.ToFloat64(cfg.Metrics.epochs); n != 0 {
				t.Errorf("%v epochs began", n)
			}
		})
	}
}

// corrects waits until n corrections are counted.
func (b *testNATS) corrects(cfg Config, cause string, n float64) {
	b.t.Helper()
	eventually(b.t, func() error {
		if got := testutil.ToFloat64(cfg.Metrics.corrections.WithLabelValues(cause)); got != n {
			return fmt.Errorf("%v corrections are counted as %s, want %v", got, cause, n)
		}
		return nil
	})
}

// forgedTombstones returns forged tombstones on subjects of their own.
func forgedTombstones() map[string]func(*event.Change) {
	return map[string]func(*event.Change){
		"of a live object":             func(c *event.Change) { c.ResourceVersion = "99999" },
		"of a live object, as it is":   func(*event.Change) {},
		"of another object":            func(c *event.Change) { c.UID, c.ResourceVersion = "other", "99999" },
		"of another cluster":           func(c *event.Change) { c.UID, c.Epoch = "other", "foreign" },
		"of a later epoch":             func(c *event.Change) { c.UID, c.Epoch = "other", "epoch/7" },
		"of a name that has no object": func(c *event.Change) { c.Key.Name, c.UID, c.ResourceVersion = "ghost", "ghost", "99999" },
	}
}

// forgeTombstone publishes a tombstone of an object on a subject of its own, edited.
func (b *testNATS) forgeTombstone(key event.Key, edit func(*event.Change)) {
	b.t.Helper()
	last, err := b.p.LastChange(b.t.Context(), key)
	if err != nil {
		b.t.Fatal(err)
	}
	forged := last.Change
	forged.Deleted = true
	edit(&forged)
	data, err := forged.Marshal()
	if err != nil {
		b.t.Fatal(err)
	}
	subject := topology.TombstoneSubject(forged.Key, forged.UID)
	if _, err := b.js.PublishMsg(b.t.Context(), &nats.Msg{Subject: subject, Header: topology.ChangeHeaders(forged), Data: data}); err != nil {
		b.t.Fatal(err)
	}
}

func TestForgedTombstoneIsRemoved(t *testing.T) {
	for name, edit := range forgedTombstones() {
		for when, before := range map[string]bool{"under a leader": false, "before the term": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				b, c := newTestNATS(t), newFakeSource()
				c.apply("a", "v1", "")
				cfg := b.config(c)
				stop := b.run(cfg)
				b.becomes(c)
				view := b.view()
				view.holds(t, c, "a")
				if before {
					b.hasBarrier(c)
					stop()
				}
				b.forgeTombstone(c.key("a"), edit)
				if before {
					stop = b.run(cfg)
				}
				b.corrects(cfg, causeVersion, 1)
				if found := append(b.tombstones("a"), b.tombstones("ghost")...); len(found) > 0 {
					t.Errorf("the stream holds the tombstones %+v", found)
				}
				view.holds(t, c, "a")
				c.apply("a", "v2", "")
				view.holds(t, c, "a")
				b.staysRight(c, stop)
			})
		}
	}
}

type storeOfTest struct{ Spec string }

// storeInformer is an informer of Stores that goes on while watchers change.
type storeInformer struct {
	*informer.Lister[storeOfTest]
}

func (b *testNATS) view() storeInformer {
	b.t.Helper()
	v := informer.New(informer.Config{JS: b.js, Service: "tuple-sync", Log: slog.New(slog.NewTextHandler(b.t.Output(), nil))})
	all := storeInformer{informer.RegisterLister[storeOfTest](v, kinds.Stores(), nil)}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	b.t.Cleanup(func() { cancel(); <-done })
	return all
}

// holds waits until the informer holds the newest state of an object.
func (s storeInformer) holds(t *testing.T, c *fakeSource, name string) {
	t.Helper()
	eventually(t, func() error {
		c.mu.Lock()
		want := c.objects[name]
		c.mu.Unlock()
		if got, _ := s.Get(c.key(name)); got.UID != want.UID || got.ResourceVersion != want.ResourceVersion {
			return fmt.Errorf("the view holds %q at version %q, want %q at %q", got.UID, got.ResourceVersion, want.UID, want.ResourceVersion)
		}
		return nil
	})
}

func TestAuditDoesNotCountOtherContentBeforeFirstSweep(t *testing.T) {
	for name, test := range map[string]struct {
		stream string
		want   suspectSource
	}{"before the first sweep of the term": {"", bySweep}, "after it": {"stream", byAudit}} {
		r := &reflector{targets: &targetKinds{}}
		k := newKindReflector(r, kinds.Stores(), newPublishQueue())
		r.kinds, k.stream = []*kindReflector{k}, test.stream
		if err := r.handleForeignMessage(t.Context(), foreignMessage{subject: topology.ChangeSubject(newFakeSource().key("a"))}); err != nil {
			t.Fatal(err)
		}
		for _, by := range k.suspects {
			if by != test.want {
				t.Errorf("%s: found by %v, want %v", name, by, test.want)
			}
		}
		if len(k.suspects) != 1 {
			t.Errorf("%s: %d suspects", name, len(k.suspects))
		}
		k.lane.shutDown()
	}
}

func TestAuditRetriesFailedCorrection(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	cfg := b.config(c)
	b.run(cfg)
	b.becomes(c)
	c.set(func(c *fakeSource) { c.down = true })
	b.forgeTombstone(c.key("a"), func(c *event.Change) { c.ResourceVersion = "99999" })
	<-time.After(2 * ackGrace) // The first attempt fails meanwhile.
	c.set(func(c *fakeSource) { c.down = false })
	b.corrects(cfg, causeVersion, 1)
}

func TestAuditDoesNotCountOtherPublisher(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	cfg := b.config(c)
	stop := b.run(cfg)
	b.becomes(c)
	b.forge(c.key("a"), func(*nats.Msg, *event.Change) {}) // As a replay by another replica.
	if _, err := b.js.Publish(t.Context(), "entail.changes.local.no.object.of.any.followed.kind", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if n := b.stream(topology.Changes).CachedInfo().State.NumDeleted; n == 0 {
			return errors.New("the message about no followed kind is still there")
		}
		return nil
	})
	b.staysRight(c, stop)
	for _, cause := range []string{causeRefused, causeVersion, causeContent} {
		b.corrects(cfg, cause, 0)
	}
}

func TestAuditDoesNotKeepAcknowledgements(t *testing.T) {
	a := newStreamAuditor(nil)
	for i := range uint64(10) {
		a.recordAcknowledged(i + 1) // All but the last are replaced before they are read.
	}
	a.recordMessage("subject", 10)
	a.recordMessage("other", 11)
	a.recordAcknowledged(11) // After it was read.
	if due := a.takeDueForeignMessages(time.Now().Add(time.Minute)); len(due) != 0 || len(a.acked) != 0 || len(a.foreign) != 0 {
		t.Errorf("due are %v; %d acknowledgements and %d messages are kept", due, len(a.acked), len(a.foreign))
	}
	a.recordMessage("foreign", 12)
	if due := a.takeDueForeignMessages(time.Now()); len(due) != 0 {
		t.Errorf("a message is foreign before its acknowledgement could come: %v", due)
	}
	if due := a.takeDueForeignMessages(time.Now().Add(ackGrace)); len(due) != 1 || due[0].sequence != 12 {
		t.Errorf("due are %v, want sequence 12", due)
	}
}

// inMemoryHalt is a halt in memory.
type inMemoryHalt struct{ reason atomic.Pointer[string] }

func (h *inMemoryHalt) Begin(reason string) { h.reason.Store(&reason) }

func (h *inMemoryHalt) StampBarrier(b *eventv1.Barrier) { b.Halted = h.Reason() }

func (h *inMemoryHalt) AdoptFromBarrier(b *eventv1.Barrier) {
	if b.GetHalted() != "" {
		h.Begin(b.GetHalted())
	}
}

func (h *inMemoryHalt) Reason() string {
	if reason := h.reason.Load(); reason != nil {
		return *reason
	}
	return ""
}

func TestThreeForgeriesInOneMinuteHaltServices(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	cfg := b.forgeryConfig(c)
	b.run(cfg)
	b.becomes(c)
	for n := 1; n <= maxForgeries; n++ {
		if reason := cfg.Halt.Reason(); reason != "" {
			t.Fatalf("halted after %d forgeries: %s", n-1, reason)
		}
		b.forge(c.key("a"), func(_ *nats.Msg, c *event.Change) { c.ResourceVersion = "99999" })
		b.corrects(cfg, causeVersion, float64(n))
	}
	eventually(t, func() error {
		last, _, err := b.p.LastBarrier(t.Context(), "local")
		if err == nil && !strings.Contains(last.GetHalted(), "entail bus resume") {
			err = fmt.Errorf("the last barrier is halted for %q", last.GetHalted())
		}
		return err
	})
	if n := b.events.Load(); n != maxForgeries {
		t.Errorf("%d Events, want %d", n, maxForgeries)
	}
}

func TestForgeriesFarApartDoNotHaltServices(t *testing.T) {
	var f forgeryCounter
	now := time.Now()
	for _, after := range []time.Duration{0, 40 * time.Second, 70 * time.Second, 110 * time.Second} {
		if f.addForgery(now.Add(after)) {
			t.Errorf("halted after %s", after)
		}
	}
	if !f.addForgery(now.Add(112 * time.Second)) {
		t.Error("three forgeries within a minute do not halt")
	}
}
