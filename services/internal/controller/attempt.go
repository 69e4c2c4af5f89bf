package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/entail-dev/entail/services/internal/tracing"
)

var errPanic = errors.New("reconciler panicked")

// callReconciler runs one reconciliation in the trace of ctx. It links the traces of the other changes that the
// reconciliation covers.
func (e *engine[K]) callReconciler(ctx context.Context, p *Request[K], traceparents []string) error {
	err := e.runWithDeadline(ctx, "reconcile", func(ctx context.Context) error { return e.reconciler.Reconcile(ctx, p) }, tracing.LinksTo(traceparents...)...)
	if err != nil {
		return fmt.Errorf("reconcile %v: %w", p.Key, err)
	}
	return nil
}

// runWithDeadline calls do with Config.Deadline instead of the deadline of ctx. The call also continues when ctx ends,
// so that a shutdown does not interrupt it. It returns a panic as an error.
func (e *engine[K]) runWithDeadline(ctx context.Context, what string, do func(context.Context) error, links ...trace.Link) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Deadline)
	defer cancel()
	ctx, span := e.cfg.Tracer.Tracer("entail/consume").Start(ctx, e.cfg.Service.Name+" "+what,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(links...))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
		}
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, what+" failed")
		}
		span.End()
	}()
	return do(ctx)
}
