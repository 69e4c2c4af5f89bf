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

// publishState publishes one state and returns the message that the stream then holds. on is the message that it should
// replace.
func (k *kindReflector) publishState(ctx context.Context, s pendingState, on compactEntry) (publish.Entry, error) {
	for _, former := range s.former {
		if err := k.cfg.Publisher.PublishTombstone(ctx, former, k.publishOptions("")); err != nil {
			return publish.Entry{}, err
		}
	}
	if s.unseen {
		return k.publishDeletion(ctx, s)
	}
	there := publish.Entry{Key: s.Key, Sequence: on.sequence, UID: on.uid, Version: on.version, ContentHash: on.contentHash, Epoch: on.epoch}
	switch {
	case on.sequence == 0:
	case !s.Deleted && on.matchesContentOf(s.Object):
		return there, nil
	case on.version == "" || !s.IsNewerThan(there.Change()):
		return k.correctPublishedMessage(ctx, namespacedNameOf(s.Key), bySweep)
	}
	expected := on.sequence
	if on.uid != s.UID || on.epoch != s.Epoch {
		expected = 0 // The publisher must read the present message.
	}
	stored, err := k.publishTracedChange(ctx, s.Change, expected, k.publishOptions(s.ContentHash))
	if err == nil && (stored.Version != s.ResourceVersion || stored.Deleted != s.Deleted) {
		return k.correctPublishedMessage(ctx, namespacedNameOf(s.Key), bySweep) // The stream held a state that is as new.
	}
	return stored, err
}

// publishOptions returns the options of a publication.
func (k *kindReflector) publishOptions(contentHash string) publish.PublicationOptions {
	return publish.PublicationOptions{ContentHash: contentHash, MetadataOnly: k.kind.MetadataOnly, TTL: k.cfg.TombstoneTTL}
}

// publishDeletion publishes the deletion of an object whose last state only the stream holds.
func (k *kindReflector) publishDeletion(ctx context.Context, s pendingState) (publish.Entry, error) {
	nothing := publish.Entry{Key: s.Key}
	last, err := k.cfg.Publisher.LastChange(ctx, s.Key)
	switch {
	case errors.Is(err, publish.ErrNoMessage):
		return nothing, nil
	case errors.Is(err, publish.ErrMalformed):
		return k.correctPublishedMessage(ctx, namespacedNameOf(s.Key), bySweep)
	case err != nil:
		return publish.Entry{}, err
	case last.Deleted:
		return last.Entry, nil
	}
	c := last.Change
	c.Deleted, c.ObservedAt, c.Epoch = true, s.ObservedAt, s.Epoch
	if s.ResourceVersion != "" {
		c.ResourceVersion = s.ResourceVersion
	}
	if k.reflector.isForeignEpoch(last.Epoch) || !c.IsNewerThan(last.Change) {
		return k.correctPublishedMessage(ctx, namespacedNameOf(s.Key), bySweep)
	}
	return k.publishTracedChange(ctx, c, last.Sequence, k.publishOptions(""))
}

// publishTracedChange publishes c as part of a trace that began when it was observed.
func (k *kindReflector) publishTracedChange(ctx context.Context, c event.Change, expected uint64, opts publish.PublicationOptions) (publish.Entry, error) {
	ctx, span := k.cfg.Tracer.Tracer("entail/watcher").Start(ctx, "publish "+k.kindLabel(),
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(c.ObservedAt))
	defer span.End()
	carrier := propagation.MapCarrier{}
	k.cfg.Propagator.Inject(ctx, carrier)
	c.Traceparent = carrier.Get("traceparent")

	k.cfg.Metrics.inFlight.Inc()
	defer k.cfg.Metrics.inFlight.Dec()
	ack, err := k.cfg.Publisher.PublishChange(ctx, c, expected, opts)
	k.cfg.Metrics.countPublication(k.kindLabel(), c, ack, err)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "not published")
		return publish.Entry{}, err
	}
	k.cfg.Metrics.delay.Observe(time.Since(c.ObservedAt).Seconds())
	if ack.Stale {
		k.mu.Lock()
		k.recordForeignVersion(ack.Entry)
		k.mu.Unlock()
		k.reflector.adoptLaterEpoch(ack.Entry)
	}
	return ack.Entry, err
}
