package embedded

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/openfga/openfga/pkg/logger"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newOpenFGALogger returns a logger that passes OpenFGA's warnings and errors to slog. It drops the log of requests.
func newOpenFGALogger(log *slog.Logger) logger.Logger {
	return &logger.ZapLogger{Logger: zap.New(slogCore{log: cmp.Or(log, slog.New(slog.DiscardHandler))})}
}

// slogCore implements [zapcore.Core] with slog.
type slogCore struct{ log *slog.Logger }

// Enabled reports whether a level is a warning or above.
func (slogCore) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With implements [zapcore.Core].
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{log: c.log.With(logAttributes(fields)...)}
}

// Check implements [zapcore.Core].
func (c slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements [zapcore.Core].
func (c slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	level := slog.LevelWarn
	if entry.Level > zapcore.WarnLevel {
		level = slog.LevelError
	}
	c.log.Log(context.Background(), level, "openfga", append([]any{"text", entry.Message}, logAttributes(fields)...)...)
	return nil
}

// Sync implements [zapcore.Core]. It has nothing to flush.
func (slogCore) Sync() error { return nil }

func logAttributes(fields []zapcore.Field) []any {
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
