package testenv

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// LogBuffer stores the JSON log of a service.
type LogBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (l *LogBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// Logger returns a logger that writes to l and to the output of the test. It drops records below level.
func (l *LogBuffer) Logger(t testing.TB, level slog.Level) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewJSONHandler(io.MultiWriter(l, t.Output()), &slog.HandlerOptions{Level: level}))
}

// Bytes returns the whole log.
func (l *LogBuffer) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.text.Bytes())
}

// CheckWarning returns nil if a warning or an error in the log contains the given text. It skips the first after bytes
// of the log.
func (l *LogBuffer) CheckWarning(offset int, text string) error {
	for line := range strings.Lines(string(l.Bytes()[offset:])) {
		warning := strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`)
		if warning && strings.Contains(strings.ReplaceAll(line, `\"`, `"`), text) {
			return nil
		}
	}
	return fmt.Errorf("no warning has %q", text)
}
