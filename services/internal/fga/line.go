package fga

import (
	"context"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/fault"
)

// CallMonitor records whether the server answers the calls of one caller. The zero value is ready to use.
type CallMonitor struct {
	mu sync.Mutex
	// open counts the unanswered calls. since is the time from which an answer is missing; zero means that none is
	// missing.
	open        int
	since, last time.Time
	err         error
}

type monitorKey struct{}

// ContextWithMonitor returns a context whose calls the monitor records.
func (l *CallMonitor) ContextWithMonitor(ctx context.Context) context.Context {
	return context.WithValue(ctx, monitorKey{}, l)
}

// ResponseState returns the time since which an answer is missing, the time of the last call, and the last error. since
// is zero if no answer is missing.
func (l *CallMonitor) ResponseState() (since, last time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since, l.last, l.err
}

// RecordCallStart records the start of a call in the monitor of ctx, if there is one. The caller must pass the outcome
// to answered.
func RecordCallStart(ctx context.Context) (answered func(error)) {
	l, ok := ctx.Value(monitorKey{}).(*CallMonitor)
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

// recordOutcome records the outcome of a call. An error about the request also counts as an answer.
func (l *CallMonitor) recordOutcome(err error) {
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
