package opensearchsync

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// logins has a cluster forget whom it has let in, once more after its users have changed. It forgets them with each change; but a
// login that it is about meanwhile, which takes as long as a hash does, is remembered afterwards with what the user was before, for
// an hour.
type logins struct {
	// empty has the cluster forget them now.
	empty func(context.Context) error
	log   *slog.Logger
	ctx   context.Context //nolint:containedctx // It lives as long as the connection.
	end   context.CancelFunc
	// waiting are those that have not been forgotten yet.
	waiting sync.WaitGroup

	mu sync.Mutex
	// pending is how many they are.
	pending int
	// turn is the last in which that was asked for, if begun: what was changed before may be of a replica that ended too early.
	turn   uint64
	begun  bool
	closed bool
}

func newLogins(empty func(context.Context) error, log *slog.Logger) *logins {
	ctx, end := context.WithCancel(context.Background())
	return &logins{empty: empty, log: log, ctx: ctx, end: end}
}

// underWay is how long logins take that are under way: most of them, then those of a server that has too much to do.
func underWay() [2]time.Duration { return [...]time.Duration{time.Second, 9 * time.Second} }

// forget is told of each pass over users, and whether it has changed any. It does not wait.
func (l *logins) forget(turn uint64, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.begun && l.turn == turn && !changed {
		return
	}
	l.turn, l.begun = turn, true
	l.pending++
	l.waiting.Go(func() {
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.pending--
		}()
		for _, wait := range underWay() {
			if !backoff.Sleep(l.ctx, wait) {
				return
			}
			if err := l.empty(l.ctx); err != nil && l.ctx.Err() == nil {
				l.log.WarnContext(l.ctx, "OpenSearch does not forget who has logged in: a password from before a change may be taken for an hour",
					slog.Any("error", err))
				l.mu.Lock()
				l.begun = false // The next pass asks again.
				l.mu.Unlock()
			}
		}
	})
}

// busy reports whether there is something left to forget.
func (l *logins) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending > 0
}

// close forgets nothing any more.
func (l *logins) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.waiting.Wait()
}
