package fga

import (
	"context"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/fault"
)

// Line is how the server answers one caller, over as many calls as that makes. The zero value is ready.
type Line struct {
	mu sync.Mutex
	// open is how many calls wait; since is when the first was made that has no answer.
	open        int
	since, last time.Time
	err         error
}

type lineKey struct{}

// On makes a context whose calls are made on the line.
func (l *Line) On(ctx context.Context) context.Context { return context.WithValue(ctx, lineKey{}, l) }

// Silence tells since when the server owes an answer, when it was last asked, and what is wrong if that is
// known; no time while it owes none.
func (l *Line) Silence() (since, last time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since, l.last, l.err
}

// Ask begins a call on the line of ctx, if there is one. Its outcome must be told.
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
	return l.answered
}

// answered takes the outcome of a call. What is about the request is an answer as good as any.
func (l *Line) answered(err error) {
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
