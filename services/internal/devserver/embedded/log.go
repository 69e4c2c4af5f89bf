package embedded

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/openfga/openfga/pkg/logger"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// openFGALog hands OpenFGA's warnings and errors to slog. Its log of every request stays out.
func openFGALog(log *slog.Logger) logger.Logger {
	return &logger.ZapLogger{Logger: zap.New(slogCore{log: cmp.Or(log, slog.New(slog.DiscardHandler))})}
}

// slogCore is slog behind zap's interface.
type slogCore struct{ log *slog.Logger }

// Enabled lets warnings and worse pass.
func (slogCore) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With adds fields to every entry.
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{log: c.log.With(attributes(fields)...)}
}

// Check is how zap asks who wants an entry.
func (c slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write logs an entry.
func (c slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	level := slog.LevelWarn
	if entry.Level > zapcore.WarnLevel {
		level = slog.LevelError
	}
	c.log.Log(context.Background(), level, "openfga", append([]any{"text", entry.Message}, attributes(fields)...)...)
	return nil
}

// Sync has nothing to flush.
func (slogCore) Sync() error { return nil }

func attributes(fields []zapcore.Field) []any {
	values := zapcore.NewMapObjectEncoder()
	attrs := make([]any, 0, len(fields))
	for _, field := range fields {
		field.AddTo(values)
	}
	for name, value := range values.Fields {
		attrs = append(attrs, slog.Any(name, value))
	}
	return attrs
}
