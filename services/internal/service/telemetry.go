package service

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

func newLog(name string, cfg Config) *slog.Logger {
	log := cfg.Embed.Log
	if log == nil {
		log = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	}
	return log.With("service", name)
}

func newMetrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return registry
}

// newTracer exports over OTLP when the standard variables say where to; they also say how
// (headers, TLS, sampler, resource). The function sends what is left, within its context.
func newTracer(ctx context.Context, name string) (trace.TracerProvider, func(context.Context) error, error) {
	nothing := func(context.Context) error { return nil }
	if !exporting(os.Getenv) {
		return noop.NewTracerProvider(), nothing, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nothing, fmt.Errorf("making the exporter of traces: %w", err)
	}
	// Later options win, so OTEL_SERVICE_NAME overrides the name.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "entail-"+name)), resource.WithFromEnv())
	if err != nil {
		return nil, nothing, fmt.Errorf("describing the service for traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return provider, provider.Shutdown, nil
}

func exporting(env func(string) string) bool {
	endpoint := env("OTEL_EXPORTER_OTLP_ENDPOINT") + env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	return endpoint != "" && !strings.EqualFold(env("OTEL_SDK_DISABLED"), "true")
}
