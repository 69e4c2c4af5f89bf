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

// verdict is the fate of a message. The worst verdict of its keys counts.
type verdict int

const (
	done verdict = iota
	// release acknowledges the message although its key must run again.
	release
	again
	handBack
	park
)

// disposition is a verdict with its reason.
type disposition struct {
	verdict
	delay time.Duration
	err   error
}

// settleKeyAndMessages decides what happens next to a key and its messages. No other function does.
func (e *engine[K]) settleKeyAndMessages(ctx context.Context, key K, r *pendingRequest, err error) {
	d := e.decideDisposition(key, r, err)
	if err != nil && d.verdict != handBack {
		e.cfg.Log.Log(ctx, e.refusals.logLevelFor(err), "reconciliation failed", slog.Any("key", key), slog.Any("error", err),
			slog.Bool("dead_letter", d.verdict == park), slog.Duration("retry_in", d.delay))
	}
	if d.verdict == again && fault.IsUnavailable(err) && e.unsettled.isNearAckLimit() {
		// Otherwise one dependency would block messages that do not need it. After a crash the next term reconciles
		// everything.
		d.verdict = release
	}
	if d.verdict == release || d.verdict == again && len(r.deliveries) == 0 {
		// No message will enqueue the key again.
		e.markPending(key, r.resync)
		e.queue.keys.AddAfter(key, d.delay)
	} else if d.verdict == again && r.resync {
		e.markPending(key, true)
	}
	for _, delivery := range r.deliveries {
		e.recordKeyDisposition(ctx, delivery, d)
	}
}

// settleWithRequeue settles a pass that succeeded but requested its key again.
func (e *engine[K]) settleWithRequeue(ctx context.Context, key K, asked *pendingRequest, why error) {
	e.mu.Lock()
	delete(e.running, key)
	e.restoreRoutes(key, asked)
	delay := e.countFailure(key, false).delay
	e.mu.Unlock()
	e.cfg.Log.Log(ctx, e.refusals.logLevelFor(why), "key is tried again later", slog.Any("key", key), slog.Any("error", why), slog.Duration("retry_in", delay))
	e.markPending(key, asked.resync)
	e.queue.keys.AddAfter(key, delay)
	for _, d := range asked.deliveries {
		e.recordKeyDisposition(ctx, d, disposition{verdict: done})
	}
}

// loggedRefusals holds what the API server refused lately, in its words.
type loggedRefusals struct{ logged *lru.LRUExpireCache }

const (
	// refusalInterval is how long a refusal is not logged again, whichever keys meet it.
	refusalInterval = 10 * time.Minute
	maxRefusals     = 256
)

func newLoggedRefusals() loggedRefusals { return loggedRefusals{lru.NewLRUExpireCache(maxRefusals)} }

// logLevelFor returns the level at which a failure is logged. A right that is missing fails every key that needs it, so that only
// the first is a warning.
func (r loggedRefusals) logLevelFor(err error) slog.Level {
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

// decideDisposition converts the error of a reconciliation into the fate of its messages. No more messages join them
// afterwards.
func (e *engine[K]) decideDisposition(key K, asked *pendingRequest, err error) disposition {
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
	// A redelivered or newer message of the object must enqueue this key again. The object may have moved to another
	// key, or another pass may have enqueued the key.
	for _, d := range asked.deliveries {
		e.addRoute(d.change.Key, key)
	}
	return disposition{again, r.delay, err}
}

// countFailure counts a failure of a key, and returns how long the key must wait. The caller holds the lock.
func (e *engine[K]) countFailure(key K, own bool) retryState {
	r := e.retries[key]
	if now := time.Now(); now.After(r.until) {
		// Attempts that other changes cause meanwhile do not count.
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
	// failures counts waits. own counts failures that no dependency caused.
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

// recordKeyDisposition records the disposition of one of the keys that d waits for. The last key settles the message by the worst
// one.
func (e *engine[K]) recordKeyDisposition(ctx context.Context, d *delivery, with disposition) {
	e.mu.Lock()
	if with.verdict > d.worst.verdict {
		d.worst = with
	}
	d.keys--
	last := d.keys <= 0
	e.mu.Unlock()
	if last {
		e.settleMessage(ctx, d)
	}
}

// settleMessage sends the fate of a message to the server. If that fails, the message comes again.
func (e *engine[K]) settleMessage(ctx context.Context, d *delivery) {
	e.unsettled.removeMessage(d)
	outcome, err := e.sendVerdict(ctx, d)
	e.metrics.handled.WithLabelValues(outcome).Inc()
	if err != nil {
		e.cfg.Log.WarnContext(ctx, "message not settled; it will come again", slog.String("subject", d.msg.Subject()), slog.Any("error", err))
	}
}

// sendVerdict settles d at the server, and returns the outcome for the metric.
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
