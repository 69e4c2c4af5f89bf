package tracing

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// WrapTransport wraps a transport so that each request has a span. It also sends the trace context to the server.
func WrapTransport(provider trace.TracerProvider) func(http.RoundTripper) http.RoundTripper {
	tracer := provider.Tracer(instrumentationScope)
	return func(next http.RoundTripper) http.RoundTripper { return tracingTransport{next: next, tracer: tracer} }
}

type tracingTransport struct {
	next   http.RoundTripper
	tracer trace.Tracer
}

// RoundTrip implements [http.RoundTripper]. The name of the span does not contain the path, because paths contain
// object names.
func (t tracingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isTraced(r.Context()) {
		return t.next.RoundTrip(r)
	}
	ctx, span := t.tracer.Start(r.Context(), r.Method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname()),
		attribute.String("url.path", r.URL.Path)))
	defer span.End()
	r = r.Clone(ctx)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	response, err := t.next.RoundTrip(r)
	if err == nil {
		span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
		if response.StatusCode >= http.StatusBadRequest {
			span.SetStatus(codes.Error, response.Status)
		}
	}
	recordError(span, err)
	return response, err
}

// WrappedRoundTripper returns the inner transport.
func (t tracingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// UnaryClientInterceptor records a span for each call and sends the trace context to the server.
func UnaryClientInterceptor(provider trace.TracerProvider) grpc.UnaryClientInterceptor {
	tracer := provider.Tracer(instrumentationScope)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if !isTraced(ctx) {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		name := strings.TrimPrefix(method, "/")
		ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("rpc.system", "grpc"), attribute.String("server.address", cc.Target())))
		defer span.End()
		err := invoke(metadata.AppendToOutgoingContext(ctx, traceparentHeader, TraceparentOf(ctx)), method, req, reply, cc, opts...)
		recordError(span, err)
		return err
	}
}
