package consume_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
)

// patient takes what comes of object a for hardly any news, when told to.
type patient struct {
	*groups

	waits atomic.Bool
}

func (p *patient) Waits(object event.Key) bool { return p.waits.Load() && object == storeKey("a") }

// startPatient runs an engine that has seen object a in group g.
func (b *bus) startPatient(patience time.Duration) (*service, *patient) {
	b.t.Helper()
	p := &patient{}
	s := b.startAs(b.js, func(g *groups) consume.Reconciler[string] { p.groups = g; return p }, func(c *consume.Config) {
		c.Patience, c.Workers = patience, 1
	})
	b.snapshot(0)
	b.awake()
	b.publish("a", "g", 1)
	s.becomes(b.t, "g", "a@1 ")
	b.settled()
	return s, p
}

func TestWhatIsHardlyNewsWaitsForMore(t *testing.T) {
	b := newBus(t)
	s, p := b.startPatient(time.Hour)
	p.waits.Store(true)
	b.publish("a", "g", 2)
	b.publish("b", "h", 3)
	s.becomes(t, "h", "b@3 ")
	if got := s.holds("g"); got != "a@1 " {
		t.Errorf("it did not wait: %q", got)
	}
	b.durable(func(i *jetstream.ConsumerInfo) bool { return i.NumPending == 0 && i.NumAckPending == 1 })
	p.waits.Store(false)
	b.publish("a", "g", 4)
	s.becomes(t, "g", "a@4 ")
	b.settled()

	p.waits.Store(true)
	s.mu.Lock()
	before := s.passes["g"]
	s.mu.Unlock()
	b.replay("a")
	eventually(t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.passes["g"] == before {
			return errors.New("what is to be looked at thoroughly waits")
		}
		return nil
	})
}

func TestWhatIsHardlyNewsComesInTheEnd(t *testing.T) {
	b := newBus(t)
	s, p := b.startPatient(0)
	p.waits.Store(true)
	b.publish("a", "g", 2)
	s.becomes(t, "g", "a@2 ")
	b.settled()
}

func TestNothingWaitsForMoreOnceItHasFailed(t *testing.T) {
	b := newBus(t)
	s, p := b.startPatient(time.Hour)
	failures := 0
	s.set(func(context.Context, *consume.Pass[string]) error {
		if failures++; failures == 1 {
			p.waits.Store(true)
			return fmt.Errorf("pass %d fails", failures)
		}
		return nil
	})
	b.publish("a", "g", 2)
	s.becomes(t, "g", "a@2 ")
	b.settled()
}
