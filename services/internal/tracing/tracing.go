// Package tracing makes every change one trace. The trace begins in the watcher and crosses NATS as a traceparent. It
// continues in each reconciliation and in its calls to OpenFGA and the API server. Log records contain the trace ID.
//
// Calls outside of a trace, such as elections and watches, start no trace.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	// instrumentationScope is the instrumentation scope of all spans.
	instrumentationScope = "entail"
	traceparentHeader    = "traceparent"
)

// ContinueTrace returns a context in the trace of traceparent, if there is one.
func ContinueTrace(ctx context.Context, traceparent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparentHeader: traceparent})
}

// TraceparentOf returns the traceparent of the span in ctx; empty if there is none.
func TraceparentOf(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparentHeader]
}

// LinksTo returns links to other traces.
func LinksTo(traceparents ...string) []trace.Link {
	var links []trace.Link
	for _, traceparent := range traceparents {
		if span := trace.SpanContextFromContext(ContinueTrace(context.Background(), traceparent)); span.IsValid() {
			links = append(links, trace.Link{SpanContext: span})
		}
	}
	return links
}

// isTraced reports whether ctx belongs to a trace.
func isTraced(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

// recordError records an error in a span. It does nothing if err is nil.
func recordError(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "failed")
	}
}
