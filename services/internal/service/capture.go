package service

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"
	"k8s.io/klog/v2"
)

// CaptureLogs leads what libraries log on their own to log: they do it through globals,
// so it is called once per process. [Main] calls it.
//
// The Kubernetes client's errors become warnings, for it tries again by itself; the rest
// of what it says is for debugging.
func CaptureLogs(log *slog.Logger) {
	klog.SetSlogLogger(slog.New(quiet{log.Handler()}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces not exported", "error", err) }))
}

// quiet passes a library's records on at a lower level.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, lowered(level))
}

func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	record.Level = lowered(record.Level)
	return q.Handler.Handle(ctx, record)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

func lowered(level slog.Level) slog.Level {
	if level >= slog.LevelError {
		return slog.LevelWarn
	}
	return min(level, slog.LevelDebug)
}
