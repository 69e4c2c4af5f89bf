package controller

import (
	"context"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// gateDelay is the interval in which a waiting worker checks whether passes may run.
const gateDelay = 100 * time.Millisecond

// awaitTurn blocks a worker while no pass may run: the turn is ours but not surely, or the view is incomplete. It returns
// the turn and whether it is ours. At shutdown it returns at once.
func (e *engine[K]) awaitTurn(ctx context.Context) (turn uint64, ours bool) {
	for {
		turn, ours = e.place.currentTurn()
		if !ours || e.place.isSure() && e.cfg.View.Complete() == nil {
			return turn, ours
		}
		if !backoff.Sleep(ctx, gateDelay) {
			e.beginNothing()
			return turn, false
		}
	}
}

// beginNothing ends passes: messages whose pass has not begun are returned to the server.
func (e *engine[K]) beginNothing() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.draining = true
}
