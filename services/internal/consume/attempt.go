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

var errPanic = errors.New("reconciler panicked")

// attempt makes one pass, as part of the trace of the change that asked for it.
func (e *engine[K]) attempt(ctx context.Context, p *Pass[K], traceparent string) error {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
	err := e.within(ctx, "reconcile", func(ctx context.Context) error { return e.reconciler.Reconcile(ctx, p) })
	if err != nil {
		return fmt.Errorf("reconcile %v: %w", p.Key, err)
	}
	return nil
}

// within does something within a deadline of its own that outlives ctx: half-done work is
// completed, not cut. A panic is an error.
func (e *engine[K]) within(ctx context.Context, what string, do func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Deadline)
	defer cancel()
	ctx, span := otel.Tracer("entail/consume").Start(ctx, e.cfg.Service.Name+" "+what, trace.WithSpanKind(trace.SpanKindConsumer))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
		}
		if err != nil {
			span.RecordError(err)
		}
		span.End()
	}()
	return do(ctx)
}
