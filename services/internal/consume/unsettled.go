package consume

import (
	"context"
	"log/slog"
	"maps"
	"slices"
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
	// delayed counts those that were handed back to come again later.
	delayed int
}

func (u *unsettled) take(d *delivery) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open[d] = struct{}{}
}

func (u *unsettled) drop(d *delivery) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, d)
}

// delay notes that a message comes again after a while, unless a newer state has replaced it.
func (u *unsettled) delay(d time.Duration) {
	u.add(1)
	time.AfterFunc(d, func() { u.add(-1) })
}

func (u *unsettled) add(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.delayed += n
}

// crowded reports whether half of what the server bears is unsettled.
func (u *unsettled) crowded() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.open)+u.delayed > topology.MaxAckPending/2
}

func (u *unsettled) all() []*delivery {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.open))
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
