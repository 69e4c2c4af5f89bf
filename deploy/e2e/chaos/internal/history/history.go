// Package history records the operations and blows on a system and their results with times, so that a failure can be
// read and repeated.
package history

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Subjects of an entry.
const (
	Operation = "op"
	Blow      = "blow"
	Heal      = "heal"
	Check     = "check"
	Violation = "VIOLATION"
)

// History writes entries in the order of the calls. It is safe for concurrent use.
type History struct {
	mu    sync.Mutex
	out   io.Writer
	begun time.Time
}

// New returns a history that begins now.
func New(out io.Writer) *History {
	h := &History{out: out, begun: time.Now()}
	_, _ = fmt.Fprintf(out, "begun %s\n", h.begun.UTC().Format(time.RFC3339Nano))
	return h
}

// Addf adds an entry. The time is in seconds since the beginning.
func (h *History) Addf(what, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = fmt.Fprintf(h.out, "%9.3f %-9s %s\n", time.Since(h.begun).Seconds(), what, fmt.Sprintf(format, args...))
}
