package testbed

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Log keeps what a service logs as JSON.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// Logger logs to it, and to the output of the test, from this level on.
func (l *Log) Logger(t testing.TB, level slog.Level) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewJSONHandler(io.MultiWriter(l, t.Output()), &slog.HandlerOptions{Level: level}))
}

// Bytes are all that was logged.
func (l *Log) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.text.Bytes())
}

// Warns is nil if people were warned of something after the first bytes.
func (l *Log) Warns(after int, of string) error {
	for line := range strings.Lines(string(l.Bytes()[after:])) {
		warning := strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`)
		if warning && strings.Contains(strings.ReplaceAll(line, `\"`, `"`), of) {
			return nil
		}
	}
	return fmt.Errorf("no warning has %q", of)
}
