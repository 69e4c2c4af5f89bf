package controller

import (
	"context"
	"errors"
	"log/slog"
	"time"

	lru "k8s.io/apimachinery/pkg/util/cache"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kube"
)

// verdict decides what happens to a message. Later constants are worse. The worst verdict of the message's keys counts.
type verdict int

const (
	done verdict = iota
	// release acknowledges the message although its key must be reconciled again.
	release
	again
	handBack
	park
)

// disposition is a verdict with its reason and the delay before a retry.
type disposition struct {
	verdict
	delay time.Duration
	err   error
}

// settleKeyAndMessages decides what happens to a key and its messages after a reconciliation.
func (e *engine[K]) settleKeyAndMessages(ctx context.Context, key K, r *pendingRequest, err error) {
	d := e.endRunAndDecide(key, r, err)
	if err != nil && d.verdict != handBack {
		e.cfg.Log.Log(ctx, e.refusals.recordAndChooseLevel(err), "reconciliation failed", slog.Any("key", key), slog.Any("error", err),
			slog.Bool("dead_letter", d.verdict == park), slog.Duration("retry_in", d.delay))
	}
	if d.verdict == again && fault.IsUnavailable(err) && e.unsettled.isNearAckLimit() {
		// Otherwise an unavailable dependency would fill the consumer's limit and block messages that do not need it.
		// After a crash the next term reconciles everything.
		d.verdict = release
	}
	if d.verdict == release || d.verdict == again && len(r.deliveries) == 0 {
		// No message will enqueue the key again, so the queue must.
		e.markPending(key, r.resync)
		e.queue.keys.AddAfter(key, d.delay)
	} else if d.verdict == again && r.resync {
		e.markPending(key, true)
	}
	for _, delivery := range r.deliveries {
		e.recordDispositionAndSettle(ctx, delivery, d)
	}
}

// settleWithRequeue settles the messages of a reconciliation that succeeded but requested its key again.
func (e *engine[K]) settleWithRequeue(ctx context.Context, key K, asked *pendingRequest, why error) {
	e.mu.Lock()
	delete(e.running, key)
	e.restoreRoutes(key, asked)
	delay := e.countFailure(key, false).delay
	e.mu.Unlock()
	e.cfg.Log.Log(ctx, e.refusals.recordAndChooseLevel(why), "reconciliation interrupted; trying again later", slog.Any("key", key),
		slog.Any("error", why), slog.Duration("retry_in", delay))
	e.markPending(key, asked.resync)
	e.queue.keys.AddAfter(key, delay)
	for _, d := range asked.deliveries {
		e.recordDispositionAndSettle(ctx, d, disposition{verdict: done})
	}
}

// refusalLog holds the texts of the API server's recent refusals.
type refusalLog struct{ logged *lru.LRUExpireCache }

const (
	// refusalInterval is the time in which a repeated refusal is not logged as a warning again, for any key.
	refusalInterval = 10 * time.Minute
	maxRefusals     = 256
)

func newRefusalLog() refusalLog { return refusalLog{lru.NewLRUExpireCache(maxRefusals)} }

// recordAndChooseLevel returns the log level for a failure. A missing permission fails every key that needs it, so only
// the first such failure is a warning.
func (r refusalLog) recordAndChooseLevel(err error) slog.Level {
	why := kube.RefusalReason(err)
	if why == "" {
		return slog.LevelWarn
	}
	if _, logged := r.logged.Get(why); logged {
		return slog.LevelDebug
	}
	r.logged.Add(why, nil, refusalInterval)
	return slog.LevelWarn
}

// endRunAndDecide converts the error of a reconciliation into the disposition of its messages. The key is no longer
// running afterwards, so no further message joins them.
func (e *engine[K]) endRunAndDecide(key K, asked *pendingRequest, err error) disposition {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, key)
	if err == nil {
		delete(e.retries, key)
		return disposition{verdict: done}
	}
	e.restoreRoutes(key, asked)
	switch {
	case e.draining || !e.elector.IsPinned():
		delete(e.retries, key)
		return disposition{verdict: handBack, err: err}
	case fault.IsTerminal(err):
		delete(e.retries, key)
		return disposition{verdict: park, err: err}
	}
	r := e.countFailure(key, !fault.IsUnavailable(err))
	if r.own >= e.cfg.MaxAttempts {
		delete(e.retries, key)
		return disposition{verdict: park, err: err}
	}
	// A redelivered or newer message of each object must enqueue this key again. AffectedKeys may no longer list the
	// key, or another reconciliation may have enqueued it.
	for _, d := range asked.deliveries {
		e.addRoute(d.change.Key, key)
	}
	return disposition{again, r.delay, err}
}

// countFailure counts a failure of a key and returns how long the key must wait. own means that no dependency caused
// the failure. The caller holds the lock.
func (e *engine[K]) countFailure(key K, own bool) retryState {
	r := e.retries[key]
	if now := time.Now(); now.After(r.until) {
		// Failures before the end of the wait do not count: other changes caused these attempts.
		r.failures++
		r.delay = e.backoff.Delay(r.failures)
		r.until = now.Add(r.delay)
		if own {
			r.own++
		}
	}
	e.retries[key] = r
	return r
}

// retryState holds the failures of a key since its last success.
type retryState struct {
	// failures counts the failures; further failures during a wait do not count. own counts those that no dependency
	// caused.
	failures, own int
	delay         time.Duration
	until         time.Time
}

func (e *engine[K]) markPending(key K, resync bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.ensurePending(key)
	r.resync = r.resync || resync
}

// recordDispositionAndSettle records the disposition of one key that d waits for. After the last key, it settles the
// message with the worst disposition of all keys.
func (e *engine[K]) recordDispositionAndSettle(ctx context.Context, d *delivery, with disposition) {
	e.mu.Lock()
	if with.verdict > d.worst.verdict {
		d.worst = with
	}
	d.openKeys--
	last := d.openKeys <= 0
	e.mu.Unlock()
	if last {
		e.settleMessage(ctx, d)
	}
}

// settleMessage sends the verdict on a message to the server. If that fails, the server delivers the message again.
func (e *engine[K]) settleMessage(ctx context.Context, d *delivery) {
	e.unsettled.removeMessage(d)
	outcome, err := e.sendVerdict(ctx, d)
	e.metrics.handled.WithLabelValues(outcome).Inc()
	if err != nil {
		e.cfg.Log.WarnContext(ctx, "message not settled; it will be delivered again", slog.String("subject", d.msg.Subject()), slog.Any("error", err))
	}
}

// sendVerdict settles d at the server and returns the outcome for the metric.
func (e *engine[K]) sendVerdict(ctx context.Context, d *delivery) (outcome string, err error) {
	switch d.worst.verdict {
	case again:
		e.reportFailure(ctx, d, eventv1.Outcome_OUTCOME_RETRYING)
		return "retried", e.nakWithDelay(d, d.worst.delay)
	case release:
		e.reportFailure(ctx, d, eventv1.Outcome_OUTCOME_RETRYING)
		return "released", d.msg.Ack()
	case handBack:
		return "handed_back", d.msg.Nak()
	case park:
		if err := e.moveToDeadLetters(ctx, d); err != nil {
			return "retried", errors.Join(err, e.nakWithDelay(d, e.cfg.MaxDelay))
		}
		return "parked", nil
	default:
		e.reportDeletion(ctx, d)
		e.metrics.observeChangeLatency(d.change)
		return "ok", d.msg.Ack()
	}
}

func (e *engine[K]) nakWithDelay(d *delivery, delay time.Duration) error {
	e.unsettled.countDelayedMessage(delay)
	return d.msg.NakWithDelay(delay)
}
