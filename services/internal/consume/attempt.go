package consume

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

var (
	errDraining = errors.New("the service is stopping")
	errPanic    = errors.New("reconciler panicked")
)

// attempt reconciles key once, as part of the trace of the newest change that asked for
// it, within a deadline of its own that outlives ctx: half-done work is completed, not cut.
func (e *engine[K]) attempt(ctx context.Context, key K, b *batch) (found []Result, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Deadline)
	defer cancel()
	if n := len(b.deliveries); n > 0 {
		carrier := propagation.MapCarrier{"traceparent": b.deliveries[n-1].change.Traceparent}
		ctx = propagation.TraceContext{}.Extract(ctx, carrier)
	}
	ctx, span := otel.Tracer("entail/consume").Start(ctx, e.cfg.Service.Name+" reconcile", trace.WithSpanKind(trace.SpanKindConsumer))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
		}
		if err != nil {
			span.RecordError(err)
		}
		span.End()
	}()
	found, err = e.reconciler.Reconcile(ctx, key, Pass{Resync: b.resync})
	if err != nil {
		return found, fmt.Errorf("reconcile %v: %w", key, err)
	}
	return found, nil
}
