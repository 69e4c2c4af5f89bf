package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// termPollInterval is the interval in which a waiting worker checks whether reconciliations may run.
const termPollInterval = 100 * time.Millisecond

// takeOver opens a term when the previous leader has surely stopped and the informer has read the whole stream. The
// informer must be current because messages that the previous leader acknowledged are not delivered again. takeOver
// then reconciles everything, which completes the previous leader's unfinished work.
func (e *engine[K]) takeOver(ctx context.Context, term uint64) {
	for err := e.publishLeaseAndAwaitTerm(ctx, term); err != nil; err = e.publishLeaseAndAwaitTerm(ctx, term) {
		e.cfg.Log.WarnContext(ctx, "term not begun; trying again", slog.Any("error", err))
		if !backoff.Sleep(ctx, rebindInterval) || !e.elector.IsCurrentTerm(term) {
			return
		}
	}
	// The previous leader may have published other results, so all results must be published again.
	e.results.ResetReports()
	// All keys are enqueued before the term opens, so that later requests merge with these.
	e.enqueueAll(false)
	if !e.elector.OpenTerm(term) {
		return
	}
	// Requests that the previous leader sent may still take effect.
	if backoff.Sleep(ctx, e.cfg.Takeover.SettlingTime) && e.elector.IsCurrentTerm(term) {
		e.enqueueRecentlyPublished()
	}
}

// publishLeaseAndAwaitTerm publishes the lease of a term. Then it waits until the previous leader has stopped and the
// informer has read the whole stream.
func (e *engine[K]) publishLeaseAndAwaitTerm(ctx context.Context, term uint64) error {
	if err := e.elector.RenewLease(ctx, term); err != nil {
		return err
	}
	e.elector.AwaitPredecessors(ctx)
	return e.cfg.View.AwaitCaughtUp(ctx)
}

// awaitTerm blocks a worker while no reconciliation may run: the term may have expired, or the informer is incomplete.
// It returns the term, the load that the informer shows, and whether this replica is the leader of the term. At shutdown
// it returns at once.
func (e *engine[K]) awaitTerm(ctx context.Context) (term, load uint64, ours bool) {
	for {
		load = e.cfg.View.LoadNumber() // Read first, so that the informer was complete after it.
		term, ours = e.elector.CurrentTerm()
		if !ours || e.elector.IsLeader() && e.cfg.View.IncompleteErr() == nil {
			return term, load, ours
		}
		if !backoff.Sleep(ctx, termPollInterval) {
			e.startDraining()
			return term, load, false
		}
	}
}

// startDraining prevents new reconciliations. Messages whose reconciliation has not begun are returned to the server.
func (e *engine[K]) startDraining() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.draining = true
}
