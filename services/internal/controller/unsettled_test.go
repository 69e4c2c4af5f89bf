package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/topology"
)

// messageWithAckCount is a message that counts the extensions of its AckWait.
type messageWithAckCount struct {
	jetstream.Msg

	renewals atomic.Int32
	err      error
}

func (m *messageWithAckCount) InProgress() error { m.renewals.Add(1); return m.err }
func (m *messageWithAckCount) Subject() string   { return "entail.changes.test" }

// A message in progress must not be redelivered, because another replica would handle it too.
func TestAckWaitIsExtendedWhileMessageIsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bounds := topology.DefaultTakeoverBounds()
		u := &unackedMessages{open: map[*delivery]struct{}{}}
		held, cut, settled := &messageWithAckCount{}, &messageWithAckCount{err: errors.New("the connection is cut")}, &messageWithAckCount{}
		for _, m := range []*messageWithAckCount{held, cut} {
			u.addMessage(&delivery{msg: m})
		}
		done := &delivery{msg: settled}
		u.addMessage(done)
		ctx, cancel := context.WithCancel(t.Context())
		go u.extendAckWaits(ctx, slog.New(slog.DiscardHandler), ackExtensionInterval(bounds))

		<-time.After(bounds.AckWait() - time.Second)
		u.removeMessage(done)
		if n := settled.renewals.Load(); n < 2 {
			t.Errorf("within one lease it is renewed %d times; the first may get lost", n)
		}
		before := settled.renewals.Load()
		<-time.After(10 * bounds.AckWait())
		if n, again := held.renewals.Load(), cut.renewals.Load(); n < 20 || again != n || settled.renewals.Load() != before {
			t.Errorf("in ten more leases %d renewals, %d of one that fails, %d of one that is settled", n, again, settled.renewals.Load()-before)
		}

		cancel()
		synctest.Wait()
		last := held.renewals.Load()
		<-time.After(bounds.AckWait())
		if n := held.renewals.Load(); n != last {
			t.Errorf("%d renewals after the end", n-last)
		}
	})
}

func TestUnackedMessagesReportNearAckLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const half = topology.MaxAckPending / 2
		u := &unackedMessages{open: map[*delivery]struct{}{}}
		for range half - 1 {
			u.countDelayedMessage(time.Minute)
		}
		one, another := &delivery{}, &delivery{}
		u.addMessage(one)
		u.addMessage(one) // The same message is added twice.
		if u.isNearAckLimit() {
			t.Error("half of what the server bears is too much")
		}
		u.addMessage(another)
		if !u.isNearAckLimit() {
			t.Error("more than half of what the server bears is not too much")
		}
		u.removeMessage(another)
		u.removeMessage(another)
		if u.isNearAckLimit() {
			t.Error("a settled message still counts")
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if u.delayed != 0 || u.isNearAckLimit() || len(u.openDeliveries()) != 1 {
			t.Errorf("after the delay %d are delayed, and %d held", u.delayed, len(u.openDeliveries()))
		}
	})
}
