package service

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"
	"k8s.io/klog/v2"
)

// CaptureLibraryLogs redirects the global loggers of libraries to log. Call it once per process; [Main] calls it.
//
// Errors of the Kubernetes client become warnings, because the client retries. Its other records become debug records.
func CaptureLibraryLogs(log *slog.Logger) {
	klog.SetSlogLogger(slog.New(levelLoweringHandler{log.Handler()}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces not exported", "error", err) }))
}

// levelLoweringHandler lowers the level of a library's records.
type levelLoweringHandler struct{ slog.Handler }

func (q levelLoweringHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, lowerLevel(level))
}

func (q levelLoweringHandler) Handle(ctx context.Context, record slog.Record) error {
	record.Level = lowerLevel(record.Level)
	return q.Handler.Handle(ctx, record)
}

func (q levelLoweringHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelLoweringHandler{q.Handler.WithAttrs(attrs)}
}

func (q levelLoweringHandler) WithGroup(name string) slog.Handler {
	return levelLoweringHandler{q.Handler.WithGroup(name)}
}

func lowerLevel(level slog.Level) slog.Level {
	if level >= slog.LevelError {
		return slog.LevelWarn
	}
	return min(level, slog.LevelDebug)
}
