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

	"github.com/entail-dev/entail/services/internal/tracing"
)

func newLogger(name string, cfg Config) *slog.Logger {
	log := cfg.Embed.Log
	if log == nil {
		log = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	}
	return slog.New(tracing.NewLogHandler(log.Handler())).With("service", name)
}

func newMetricsRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return registry
}

// newTracerProvider exports traces over OTLP if the standard OTEL variables name an endpoint. These variables also
// configure headers, TLS, the sampler and the resource. Otherwise traces exist only as IDs in log records. The
// returned function exports the remaining traces.
func newTracerProvider(ctx context.Context, name string) (trace.TracerProvider, func(context.Context) error, error) {
	nothing := func(context.Context) error { return nil }
	// Later options win, so OTEL_SERVICE_NAME overrides the name.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "entail-"+name)), resource.WithFromEnv())
	if err != nil {
		return nil, nothing, fmt.Errorf("describing the service for traces: %w", err)
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	if isOTLPConfigured(os.Getenv) {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, nothing, fmt.Errorf("creating the exporter of traces: %w", err)
		}
		options = append(options, sdktrace.WithBatcher(exporter))
	}
	provider := sdktrace.NewTracerProvider(options...)
	return provider, provider.Shutdown, nil
}

func isOTLPConfigured(env func(string) string) bool {
	endpoint := env("OTEL_EXPORTER_OTLP_ENDPOINT") + env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	return endpoint != "" && !strings.EqualFold(env("OTEL_SDK_DISABLED"), "true")
}
