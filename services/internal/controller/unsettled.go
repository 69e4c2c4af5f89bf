package controller

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/topology"
)

// unackedMessages counts the messages that are not settled at the server. The server stops the delivery when they
// reach its limit.
type unackedMessages struct {
	mu sync.Mutex
	// open holds the messages that this replica has not settled. The engine extends their AckWait.
	open map[*delivery]struct{}
	// delayed counts the messages that were returned to be delivered again later.
	delayed int
}

func (u *unackedMessages) addMessage(d *delivery) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open[d] = struct{}{}
}

func (u *unackedMessages) removeMessage(d *delivery) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, d)
}

// countDelayedMessage counts a returned message until its delay has passed.
func (u *unackedMessages) countDelayedMessage(d time.Duration) {
	u.addDelayed(1)
	time.AfterFunc(d, func() { u.addDelayed(-1) })
}

func (u *unackedMessages) addDelayed(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.delayed += n
}

// isNearAckLimit reports whether more than half of the server's limit is in use.
func (u *unackedMessages) isNearAckLimit() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.open)+u.delayed > topology.MaxAckPending/2
}

func (u *unackedMessages) openDeliveries() []*delivery {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.open))
}

// extendAckWaits extends the AckWait of all open messages until ctx ends.
func (u *unackedMessages) extendAckWaits(ctx context.Context, log *slog.Logger, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for _, d := range u.openDeliveries() {
				if err := d.msg.InProgress(); err != nil {
					log.DebugContext(ctx, "lease not renewed", slog.String("subject", d.msg.Subject()), slog.Any("error", err))
				}
			}
		}
	}
}
