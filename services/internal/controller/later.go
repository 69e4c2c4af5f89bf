package controller

import (
	"context"
	"log/slog"
)

// RequeueWithBackoff requests this key again after a delay that grows each time. It serves obstacles that no change reports, such as
// a missing right. The messages of this pass are done.
func (p *Request[K]) RequeueWithBackoff(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later = why
}

// settleLater settles a pass that succeeded but requested its key again.
func (e *engine[K]) settleLater(ctx context.Context, key K, asked *pending, why error) {
	e.mu.Lock()
	delete(e.running, key)
	e.keepRoutes(key, asked)
	delay := e.countFailure(key, false).delay
	e.mu.Unlock()
	e.cfg.Log.Log(ctx, e.refusals.logLevel(why), "key is tried again later", slog.Any("key", key), slog.Any("error", why), slog.Duration("retry_in", delay))
	e.requeueKey(key, asked.resync)
	e.queue.keys.AddAfter(key, delay)
	for _, d := range asked.deliveries {
		e.finishDelivery(ctx, d, disposition{verdict: done})
	}
}
