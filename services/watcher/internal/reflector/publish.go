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

// publish brings one state to the stream, where on is believed to be, and tells what
// the stream then holds.
func (k *kindReflector) publish(ctx context.Context, s state, on head) (publish.Head, error) {
	if s.unseen {
		return k.publishDeletion(ctx, s)
	}
	there := publish.Head{Key: s.Key, Sequence: on.sequence, Version: on.version, Meaning: on.meaning, Epoch: k.reflector.epoch}
	if on.version != "" && (!s.Deleted && on.meaning == s.Meaning || !s.NewerThan(there.Change())) {
		return there, nil
	}
	return k.send(ctx, s.Change, on.sequence, s.Meaning)
}

// publishDeletion publishes the deletion of an object whose last state only the stream knows.
// What is no state of an object at all is taken away instead.
func (k *kindReflector) publishDeletion(ctx context.Context, s state) (publish.Head, error) {
	nothing := publish.Head{Key: s.Key}
	last, err := k.cfg.Publisher.Last(ctx, s.Key)
	switch {
	case errors.Is(err, publish.ErrNone):
		return nothing, nil
	case errors.Is(err, publish.ErrMalformed):
		k.cfg.Log.WarnContext(ctx, "message on the subject of an object that does not exist removed", "key", s.Key.String(), "error", err)
		return nothing, k.cfg.Publisher.Remove(ctx, last.Sequence)
	case err != nil:
		return publish.Head{}, err
	case last.Deleted:
		return last.Head, nil
	}
	c := last.Change
	c.Deleted, c.ObservedAt = true, s.ObservedAt
	if s.ResourceVersion != "" {
		c.ResourceVersion = s.ResourceVersion
	}
	if !c.NewerThan(last.Change) {
		return last.Head, nil // Somebody saw the object after our list was made.
	}
	return k.send(ctx, c, last.Sequence, "")
}

// send publishes c as part of a trace that began when it was observed.
func (k *kindReflector) send(ctx context.Context, c event.Change, expected uint64, meaning string) (publish.Head, error) {
	ctx, span := k.cfg.Tracer.Tracer("entail/watcher").Start(ctx, "publish "+k.label(),
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(c.ObservedAt))
	defer span.End()
	carrier := propagation.MapCarrier{}
	k.cfg.Propagator.Inject(ctx, carrier)
	c.Traceparent = carrier.Get("traceparent")

	k.cfg.Metrics.inFlight.Inc()
	defer k.cfg.Metrics.inFlight.Dec()
	ack, err := k.cfg.Publisher.Publish(ctx, c, expected, publish.Options{Meaning: meaning, TTL: k.cfg.TombstoneTTL})
	k.cfg.Metrics.publication(k.label(), c, ack, err)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "not published")
		return publish.Head{}, err
	}
	k.cfg.Metrics.delay.Observe(time.Since(c.ObservedAt).Seconds())
	return ack.Head, nil
}
