package consume

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/topology"
)

// unsettled are the messages that the server still waits for: it sends no more when there are
// too many of them.
type unsettled struct {
	mu sync.Mutex
	// open messages are held by us; their leases are renewed.
	open map[*delivery]struct{}
	// delayed messages were handed back, to come again at the given time; by sequence.
	delayed map[uint64]time.Time
}

// take adds a message that is to be held.
func (u *unsettled) take(d *delivery) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open[d] = struct{}{}
	delete(u.delayed, d.sequence)
}

// drop removes a message that is dealt with.
func (u *unsettled) drop(d *delivery) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, d)
	delete(u.delayed, d.sequence)
}

// delay notes that a message comes again later.
func (u *unsettled) delay(d *delivery, delay time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.delayed[d.sequence] = time.Now().Add(delay)
}

// crowded reports whether half of what the server bears is unsettled. What is long overdue was
// replaced by a newer state, and does not come again.
func (u *unsettled) crowded() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	const most = topology.MaxAckPending / 2
	if len(u.open)+len(u.delayed) <= most {
		return false
	}
	overdue := time.Now().Add(-topology.AckWait)
	for sequence, at := range u.delayed {
		if at.Before(overdue) {
			delete(u.delayed, sequence)
		}
	}
	return len(u.open)+len(u.delayed) > most
}

// all are the messages that are held.
func (u *unsettled) all() []*delivery {
	u.mu.Lock()
	defer u.mu.Unlock()
	held := make([]*delivery, 0, len(u.open))
	for d := range u.open {
		held = append(held, d)
	}
	return held
}

// renew renews the leases on all that is held until ctx ends.
func (u *unsettled) renew(ctx context.Context, log *slog.Logger, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for _, d := range u.all() {
				if err := d.msg.InProgress(); err != nil {
					log.DebugContext(ctx, "lease not renewed", slog.String("subject", d.msg.Subject()), slog.Any("error", err))
				}
			}
		}
	}
}
