package opensearchsync

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// authCacheFlusher empties a cluster's cache of logins again some time after its users have changed. OpenSearch empties the cache
// with each change. But a login in progress, which takes as long as a password hash, enters the cache afterwards with
// the old user. It would stay valid there for an hour.
type authCacheFlusher struct {
	// empty empties the cache of logins.
	empty func(context.Context) error
	log   *slog.Logger
	ctx   context.Context //nolint:containedctx // It lives as long as the connection.
	end   context.CancelFunc
	// waiting counts the goroutines that will empty the cache, for close.
	waiting sync.WaitGroup

	mu sync.Mutex
	// pending is the number of these goroutines.
	pending int
	// term holds the term of the last request, if begun is true. In a new term the cache is emptied once, because the
	// previous leader may have stopped too early.
	term   uint64
	begun  bool
	closed bool
}

func newAuthCacheFlusher(empty func(context.Context) error, log *slog.Logger) *authCacheFlusher {
	ctx, end := context.WithCancel(context.Background())
	return &authCacheFlusher{empty: empty, log: log, ctx: ctx, end: end}
}

// flushDelays returns the waits before the cache is emptied. The first covers most logins in progress, the second those of
// an overloaded server.
func flushDelays() [2]time.Duration { return [...]time.Duration{time.Second, 9 * time.Second} }

// scheduleFlush schedules the emptying of the cache if changed is true, or in the first run of a term. It does not wait.
func (l *authCacheFlusher) scheduleFlush(term uint64, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.begun && l.term == term && !changed {
		return
	}
	l.term, l.begun = term, true
	l.pending++
	l.waiting.Go(func() {
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.pending--
		}()
		for _, wait := range flushDelays() {
			if !backoff.Sleep(l.ctx, wait) {
				return
			}
			if err := l.empty(l.ctx); err != nil && l.ctx.Err() == nil {
				l.log.WarnContext(l.ctx, "OpenSearch did not empty its cache of logins; it may accept the old password for an hour",
					slog.Any("error", err))
				l.mu.Lock()
				l.begun = false // The next run tries again.
				l.mu.Unlock()
			}
		}
	})
}

// isFlushPending reports whether the cache is still to be emptied.
func (l *authCacheFlusher) isFlushPending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending > 0
}

// cancelFlush cancels what is scheduled and waits for the goroutines.
func (l *authCacheFlusher) cancelFlush() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.waiting.Wait()
}
