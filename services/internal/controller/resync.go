package controller

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/topology"
)

// runResyncLoop makes the leader reconcile everything: once at the start, and with a comparison at every
// resync.
func (e *engine[K]) runResyncLoop(ctx context.Context) {
	msg := nats.NewMsg(topology.ResyncSubject(e.cfg.Service.Name))
	for ctx.Err() == nil {
		if _, err := e.cfg.JS.PublishMsg(ctx, msg); err != nil {
			if !errors.Is(err, context.Canceled) {
				e.cfg.Log.WarnContext(ctx, "wake-up not published", slog.Any("error", err))
			}
			backoff.Sleep(ctx, time.Second)
			continue
		}
		msg.Header.Set(topology.ReplayHeader, "resync")
		backoff.Sleep(ctx, time.Duration(float64(e.cfg.Resync)*(0.9+rand.Float64()/5)))
	}
}

// handleResyncRequest handles a message that requests the reconciliation of everything.
func (e *engine[K]) handleResyncRequest(ctx context.Context, d *delivery) {
	detector, ok := e.reconciler.(DriftDetector[K])
	if !ok || !d.replay {
		if meta, err := d.msg.Metadata(); d.replay || err != nil || e.elector.HasOpenedBefore(meta.Sequence.Stream) {
			e.enqueueAll(d.replay) // If the term is not open yet, takeOver enqueues all.
		}
		e.settleMessage(ctx, d)
		return
	}
	e.observing.Go(func() {
		if err := e.enqueueDriftedKeys(ctx, detector); err != nil {
			e.cfg.Log.WarnContext(ctx, "observation of the backend failed", slog.Any("error", err))
			d.worst = disposition{verdict: again, delay: e.cfg.MaxDelay, err: err}
		}
		e.settleMessage(ctx, d)
	})
}

// enqueueDriftedKeys reads the whole backend and enqueues the keys whose state differs.
func (e *engine[K]) enqueueDriftedKeys(ctx context.Context, detector DriftDetector[K]) error {
	var keys []K
	err := e.runWithDeadline(ctx, "observe", func(ctx context.Context) (err error) {
		keys, err = detector.DriftedKeys(ctx)
		return err
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enqueueKeys(keys, true)
	return nil
}
