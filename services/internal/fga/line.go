package fga

import (
	"context"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/fault"
)

// Line records how the server answers the calls of one caller. The zero value is ready to use.
type Line struct {
	mu sync.Mutex
	// open counts unanswered calls. since is the time from which the server owes an answer.
	open        int
	since, last time.Time
	err         error
}

type lineKey struct{}

// On returns a context whose calls are recorded on the line.
func (l *Line) On(ctx context.Context) context.Context { return context.WithValue(ctx, lineKey{}, l) }

// Silence returns the time since which the server owes an answer, the time of the last call, and the last error. The
// time since is zero if no answer is due.
func (l *Line) Silence() (since, last time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since, l.last, l.err
}

// Ask records the start of a call on the line of ctx, if it has one. The caller must pass the outcome to answered.
func Ask(ctx context.Context) (answered func(error)) {
	l, ok := ctx.Value(lineKey{}).(*Line)
	if !ok {
		return func(error) {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	if l.last = time.Now(); l.since.IsZero() {
		l.since = l.last
	}
	return l.recordOutcome
}

// recordOutcome records the outcome of a call. An error about the request counts as an answer.
func (l *Line) recordOutcome(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.err = err; fault.IsUnavailable(err) {
		return
	}
	l.since, l.err = time.Time{}, nil
	if l.open > 0 {
		l.since = time.Now()
	}
}
