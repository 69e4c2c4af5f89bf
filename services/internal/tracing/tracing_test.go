package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func recorded(t *testing.T) (*sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), spans
}

func TestWrapTransportContinuesTrace(t *testing.T) {
	var told string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = r.Header.Get("Traceparent")
		w.WriteHeader(http.StatusConflict)
	}))
	defer server.Close()
	provider, spans := recorded(t)
	client := &http.Client{Transport: WrapTransport(provider)(http.DefaultTransport)}
	call := func(ctx context.Context) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPatch, server.URL+"/apis/x/stores/a/status", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	call(t.Context())
	if n := len(spans.Ended()); n != 0 || told != "" {
		t.Errorf("call without a trace: got %d spans and header %q", n, told)
	}
	call(ContinueTrace(t.Context(), parent))
	ended := spans.Ended()
	if len(ended) != 1 || ended[0].Name() != "PATCH" || ended[0].Parent().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" ||
		ended[0].Status().Code != codes.Error {
		t.Fatalf("spans: %v", ended)
	}
	if !strings.Contains(told, ended[0].SpanContext().SpanID().String()) {
		t.Errorf("got header %q", told)
	}
}

func TestUnaryClientInterceptorContinuesTrace(t *testing.T) {
	provider, spans := recorded(t)
	conn, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	intercept, refused := UnaryClientInterceptor(provider), errors.New("refused")
	var told []string
	invoke := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		out, _ := metadata.FromOutgoingContext(ctx)
		told = out.Get("traceparent")
		return refused
	}
	for _, traceparent := range []string{"", parent} {
		if err := intercept(ContinueTrace(t.Context(), traceparent), "/openfga.v1.OpenFGAService/Write", nil, nil, conn, invoke); !errors.Is(err, refused) {
			t.Fatal(err)
		}
	}
	ended := spans.Ended()
	if len(ended) != 1 || ended[0].Name() != "openfga.v1.OpenFGAService/Write" || len(ended[0].Events()) != 1 ||
		len(told) != 1 || !strings.Contains(told[0], ended[0].SpanContext().SpanID().String()) {
		t.Fatalf("got spans %v, header %v", ended, told)
	}
}

func TestLogHandlerAddsTraceID(t *testing.T) {
	var lines bytes.Buffer
	log := slog.New(NewLogHandler(slog.NewJSONHandler(&lines, nil))).With("service", "test")
	log.InfoContext(t.Context(), "without")
	if strings.Contains(lines.String(), "trace_id") {
		t.Errorf("log: %s", &lines)
	}
	log.InfoContext(ContinueTrace(t.Context(), parent), "within")
	if !strings.Contains(lines.String(), `"service":"test","trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331"`) {
		t.Errorf("log: %s", &lines)
	}
}

func TestContinueTrace(t *testing.T) {
	if got := TraceparentOf(ContinueTrace(t.Context(), parent)); got != parent {
		t.Errorf("got %q", got)
	}
	if got := TraceparentOf(ContinueTrace(t.Context(), "")); got != "" {
		t.Errorf("got %q", got)
	}
	if links := LinksTo("", "nonsense", parent); len(links) != 1 || links[0].SpanContext.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("links: %v", links)
	}
}
