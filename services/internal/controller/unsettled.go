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

// unsettled holds the messages that are not settled at the server. The server delivers no more if they are too many.
type unsettled struct {
	mu sync.Mutex
	// open holds the messages that this replica has not settled. The engine extends their AckWait.
	open map[*delivery]struct{}
	// delayed counts messages that were returned to come again later.
	delayed int
}

func (u *unsettled) takeMessage(d *delivery) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open[d] = struct{}{}
}

func (u *unsettled) dropMessage(d *delivery) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, d)
}

// countDelayed counts a message that comes again after a while, unless a newer state replaces it.
func (u *unsettled) countDelayed(d time.Duration) {
	u.addCount(1)
	time.AfterFunc(d, func() { u.addCount(-1) })
}

func (u *unsettled) addCount(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.delayed += n
}

// isNearLimit reports whether half of the server's limit is unsettled.
func (u *unsettled) isNearLimit() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.open)+u.delayed > topology.MaxAckPending/2
}

func (u *unsettled) openDeliveries() []*delivery {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.open))
}

// extendAckWaits extends the AckWait of all open messages until ctx ends.
func (u *unsettled) extendAckWaits(ctx context.Context, log *slog.Logger, interval time.Duration) {
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
