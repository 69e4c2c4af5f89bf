package consume

import (
	"context"
	"log/slog"
)

// Later requests this key again after a delay that grows each time. It serves obstacles that no change reports, such as
// a missing right. The messages of this pass are done.
func (p *Pass[K]) Later(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later = why
}

// settleLater settles a pass that succeeded but requested its key again.
func (e *engine[K]) settleLater(ctx context.Context, key K, asked *request, why error) {
	e.mu.Lock()
	delete(e.running, key)
	e.stay(key, asked)
	delay := e.delayed(key, false).delay
	e.mu.Unlock()
	e.cfg.Log.Log(ctx, e.refusals.level(why), "key is tried again later", slog.Any("key", key), slog.Any("error", why), slog.Duration("retry_in", delay))
	e.requeue(key, asked.resync)
	e.queue.keys.AddAfter(key, delay)
	for _, d := range asked.deliveries {
		e.finish(ctx, d, disposition{verdict: done})
	}
}
