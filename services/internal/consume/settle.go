package consume

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
)

// verdict is what becomes of a message; of several the worst counts.
type verdict int

const (
	done verdict = iota
	again
	handBack
	park
)

// settle decides what happens next to a key and its messages. It alone does.
func (e *engine[K]) settle(ctx context.Context, key K, b *batch, err error) {
	v, delay := e.judge(key, err)
	if err != nil && v != handBack {
		e.cfg.Log.WarnContext(ctx, "reconciliation failed", slog.Any("key", key), slog.Any("error", err),
			slog.Bool("dead_letter", v == park), slog.Duration("retry_in", delay))
	}
	if v == again && len(b.deliveries) == 0 {
		// No message will bring the key back.
		e.requeue(key, b.resync)
		e.queue.AddAfter(key, delay)
	} else if v == again && b.resync {
		e.requeue(key, true)
	}
	for _, d := range b.deliveries {
		if v == again {
			e.retain(d.change.Key, key)
		}
		e.finish(ctx, d, ruling{v, delay, err})
	}
}

// retain makes an object touch key once more: when its message comes again, or a newer one in its
// place, what has failed is tried again, even if the object has long moved elsewhere.
func (e *engine[K]) retain(object event.Key, key K) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.routes[object], key) {
		e.routes[object] = append(slices.Clone(e.routes[object]), key)
	}
}

// judge turns the error of a reconciliation into a verdict.
func (e *engine[K]) judge(key K, err error) (verdict, time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		delete(e.troubles, key)
		return done, 0
	case e.draining:
		return handBack, 0
	case fault.IsTerminal(err):
		delete(e.troubles, key)
		return park, 0
	}
	t := e.troubles[key]
	if now := time.Now(); now.After(t.until) {
		// Attempts that other events bring about meanwhile count for nothing.
		t.failures++
		t.delay = e.delay(t.failures)
		t.until = now.Add(t.delay)
		if !fault.IsUnavailable(err) {
			t.own++
		}
	}
	e.troubles[key] = t
	if t.own >= e.cfg.MaxAttempts {
		delete(e.troubles, key)
		return park, 0
	}
	return again, t.delay
}

// trouble is what a key has been through since its last success.
type trouble struct {
	// failures counts waits; own counts failures that are nobody else's fault.
	failures, own int
	delay         time.Duration
	until         time.Time
}

// delay doubles with every failure up to MaxDelay, within a quarter either way.
func (e *engine[K]) delay(failures int) time.Duration {
	d := e.cfg.MaxDelay
	if shift := failures - 1; shift < 16 {
		d = min(d, e.cfg.MinDelay<<shift)
	}
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}

func (e *engine[K]) requeue(key K, resync bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.wait(key)
	b.resync = b.resync || resync
}

// ruling is a verdict with its reasons.
type ruling struct {
	verdict
	delay time.Duration
	err   error
}

// finish rules on one of the keys that d waits for; the last one settles the message
// by the worst ruling.
func (e *engine[K]) finish(ctx context.Context, d *delivery, r ruling) {
	e.mu.Lock()
	if r.verdict > d.worst.verdict {
		d.worst = r
	}
	d.keys--
	last := d.keys <= 0
	if last {
		delete(e.open, d)
	}
	e.mu.Unlock()
	if last {
		e.dispose(ctx, d)
	}
}

// dispose tells the server what became of a message. Whatever goes wrong here, the
// message stays and comes again.
func (e *engine[K]) dispose(ctx context.Context, d *delivery) {
	var err error
	outcome := "ok"
	switch d.worst.verdict {
	case done:
		err = d.msg.Ack()
		e.metrics.age(d.change)
	case again:
		outcome = "retried"
		err = d.msg.NakWithDelay(d.worst.delay)
		e.results.report(ctx, failed(d.change, eventv1.Outcome_OUTCOME_RETRYING, d.worst.err))
	case handBack:
		outcome = "handed back"
		err = d.msg.Nak()
	case park:
		outcome = "parked"
		if err = e.park(ctx, d); err != nil {
			outcome = "retried"
			err = d.msg.NakWithDelay(e.cfg.MaxDelay)
		}
	}
	e.metrics.handled.WithLabelValues(outcome).Inc()
	if err != nil {
		e.cfg.Log.WarnContext(ctx, "message not settled; it will come again", slog.String("subject", d.msg.Subject()), slog.Any("error", err))
	}
}

// failed is the result of a change that could not be handled.
func failed(c event.Change, outcome eventv1.Outcome, err error) Result {
	return Result{Change: c, Outcome: outcome, Message: err.Error()}
}
