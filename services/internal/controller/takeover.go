package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// gateDelay is the interval in which a waiting worker checks whether passes may run.
const gateDelay = 100 * time.Millisecond

// takeOver opens a term once the previous replica has surely stopped and the view holds everything that the stream
// holds. The view must be complete because messages of that replica are not delivered again. It then reconciles
// everything, which completes the unfinished work of that replica.
func (e *engine[K]) takeOver(ctx context.Context, term uint64) {
	for err := e.prepareTerm(ctx, term); err != nil; err = e.prepareTerm(ctx, term) {
		e.cfg.Log.WarnContext(ctx, "turn not begun yet", slog.Any("error", err))
		if !backoff.Sleep(ctx, rebind) || !e.elector.IsCurrentTerm(term) {
			return
		}
	}
	e.results.Forget()  // The replica before may have reported other results since.
	e.enqueueAll(false) // Enqueued before the term opens, so that later requests merge with it.
	if !e.elector.OpenTerm(term) {
		return
	}
	// Requests that the replica before had sent may still take effect.
	if backoff.Sleep(ctx, e.cfg.Takeover.Settling) && e.elector.IsCurrentTerm(term) {
		e.enqueueRecentlyPublished()
	}
}

// prepareTerm publishes the lease of a term, and waits until the replica before has stopped and the view holds everything
// that the stream holds.
func (e *engine[K]) prepareTerm(ctx context.Context, term uint64) error {
	if err := e.elector.RenewLease(ctx, term); err != nil {
		return err
	}
	e.elector.AwaitPredecessors(ctx)
	return e.cfg.View.CatchUp(ctx)
}

// awaitTerm blocks a worker while no pass may run: the term is ours but not surely, or the view is incomplete. It returns
// the term and whether it is ours. At shutdown it returns at once.
func (e *engine[K]) awaitTerm(ctx context.Context) (term uint64, ours bool) {
	for {
		term, ours = e.elector.CurrentTerm()
		if !ours || e.elector.IsLeader() && e.cfg.View.IncompleteErr() == nil {
			return term, ours
		}
		if !backoff.Sleep(ctx, gateDelay) {
			e.startDraining()
			return term, false
		}
	}
}

// startDraining ends passes: messages whose pass has not begun are returned to the server.
func (e *engine[K]) startDraining() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.draining = true
}
