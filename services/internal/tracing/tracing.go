// Package tracing makes every change one trace: it begins where the watcher sees the change,
// crosses the bus as a traceparent, and goes on in each pass and in each call to OpenFGA and
// the API server that a pass makes. Log lines name the trace that they belong to.
//
// Calls that no trace leads to make none of their own: elections and watches tell nothing.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	// scope is what spans name as the code that made them.
	scope  = "entail"
	header = "traceparent"
)

// Continue makes what happens in the context part of the trace that traceparent names, if any.
func Continue(ctx context.Context, traceparent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{header: traceparent})
}

// Traceparent names the span of the context; it is empty if there is none.
func Traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[header]
}

// Links lead from a span to the traces that it belongs to as well.
func Links(traceparents ...string) []trace.Link {
	var links []trace.Link
	for _, traceparent := range traceparents {
		if span := trace.SpanContextFromContext(Continue(context.Background(), traceparent)); span.IsValid() {
			links = append(links, trace.Link{SpanContext: span})
		}
	}
	return links
}

// traced reports whether a trace leads to ctx.
func traced(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

// fail tells a span of an error, if there is one.
func fail(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "failed")
	}
}
