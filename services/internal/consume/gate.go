package consume

import (
	"context"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// gateDelay is how often a worker looks whether there may be passes again.
const gateDelay = 100 * time.Millisecond

// await holds a worker while passes must not be made: the turn is ours and that is not sure, or the view
// is not complete. It reports whether the turn is ours; at a shutdown it does not wait.
func (e *engine[K]) await(ctx context.Context) (turn uint64, ours bool) {
	for {
		turn, ours = e.place.current()
		if !ours || e.place.sure() && e.cfg.View.Complete() == nil {
			return turn, ours
		}
		if !backoff.Sleep(ctx, gateDelay) {
			e.beginNothing()
			return turn, false
		}
	}
}

// beginNothing ends passes: what is not in progress is handed back.
func (e *engine[K]) beginNothing() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.draining = true
}
