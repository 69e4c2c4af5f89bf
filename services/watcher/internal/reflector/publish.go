package reflector

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/publish"
)

// publish publishes one state and returns the message that the stream then holds. on is the message that it should
// replace.
func (k *kindReflector) publish(ctx context.Context, s state, on head) (publish.Head, error) {
	for _, former := range s.former {
		if err := k.cfg.Publisher.PublishTombstone(ctx, former, k.options("")); err != nil {
			return publish.Head{}, err
		}
	}
	if s.unseen {
		return k.publishDeletion(ctx, s)
	}
	there := publish.Head{Key: s.Key, Sequence: on.sequence, UID: on.uid, Version: on.version, Meaning: on.meaning, Epoch: on.epoch}
	switch {
	case on.sequence == 0:
	case !s.Deleted && on.holds(s.Object):
		return there, nil
	case on.version == "" || !s.NewerThan(there.Change()):
		return k.correct(ctx, nameOf(s.Key), bySweep)
	}
	expected := on.sequence
	if on.uid != s.UID || on.epoch != s.Epoch {
		expected = 0 // The publisher must read the present message.
	}
	stored, err := k.send(ctx, s.Change, expected, k.options(s.Meaning))
	if err == nil && (stored.Version != s.ResourceVersion || stored.Deleted != s.Deleted) {
		return k.correct(ctx, nameOf(s.Key), bySweep) // The stream held a state that is as new.
	}
	return stored, err
}

// options returns the options of a publication.
func (k *kindReflector) options(meaning string) publish.Options {
	return publish.Options{Meaning: meaning, MetadataOnly: k.kind.MetadataOnly, TTL: k.cfg.TombstoneTTL}
}

// publishDeletion publishes the deletion of an object whose last state only the stream holds.
func (k *kindReflector) publishDeletion(ctx context.Context, s state) (publish.Head, error) {
	nothing := publish.Head{Key: s.Key}
	last, err := k.cfg.Publisher.Last(ctx, s.Key)
	switch {
	case errors.Is(err, publish.ErrNone):
		return nothing, nil
	case errors.Is(err, publish.ErrMalformed):
		return k.correct(ctx, nameOf(s.Key), bySweep)
	case err != nil:
		return publish.Head{}, err
	case last.Deleted:
		return last.Head, nil
	}
	c := last.Change
	c.Deleted, c.ObservedAt, c.Epoch = true, s.ObservedAt, s.Epoch
	if s.ResourceVersion != "" {
		c.ResourceVersion = s.ResourceVersion
	}
	if !c.NewerThan(last.Change) {
		return k.correct(ctx, nameOf(s.Key), bySweep)
	}
	return k.send(ctx, c, last.Sequence, k.options(""))
}

// send publishes c as part of a trace that began when it was observed.
func (k *kindReflector) send(ctx context.Context, c event.Change, expected uint64, opts publish.Options) (publish.Head, error) {
	ctx, span := k.cfg.Tracer.Tracer("entail/watcher").Start(ctx, "publish "+k.label(),
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(c.ObservedAt))
	defer span.End()
	carrier := propagation.MapCarrier{}
	k.cfg.Propagator.Inject(ctx, carrier)
	c.Traceparent = carrier.Get("traceparent")

	k.cfg.Metrics.inFlight.Inc()
	defer k.cfg.Metrics.inFlight.Dec()
	ack, err := k.cfg.Publisher.Publish(ctx, c, expected, opts)
	k.cfg.Metrics.publication(k.label(), c, ack, err)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "not published")
		return publish.Head{}, err
	}
	k.cfg.Metrics.delay.Observe(time.Since(c.ObservedAt).Seconds())
	if ack.Stale {
		k.mu.Lock()
		k.overtaken(ack.Head)
		k.mu.Unlock()
		err = k.reflector.checkEpoch(ack.Head)
	}
	return ack.Head, err
}
