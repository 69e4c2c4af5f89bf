// Package limiter bounds how many calls run at a time. Each call has an owner, such as a user or a namespace. One owner
// cannot keep the others waiting.
package limiter

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// ConcurrencyLimiter limits concurrent calls. The others wait.
type ConcurrencyLimiter struct {
	share func(held, free int) bool

	mu   sync.Mutex
	free int
	// held counts the slots per owner.
	held map[string]int
	// waiting lists the waiters in the order in which they are served.
	waiting []*waiter
}

type waiter struct {
	owner  string
	served chan struct{}
}

// New returns a limiter for n calls at a time. share reports whether an owner that holds some slots may get another one
// while so many are free.
func New(n int, share func(held, free int) bool) *ConcurrencyLimiter {
	return &ConcurrencyLimiter{share: share, free: n, held: map[string]int{}}
}

// Acquire waits for a slot until ctx ends. The caller must call release. The empty owner stands for unknown ones, which
// have no share.
func (l *ConcurrencyLimiter) Acquire(ctx context.Context, owner string) (release func(), err error) {
	w := &waiter{owner, make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, w)
	l.grantSlots()
	l.mu.Unlock()
	select {
	case <-w.served:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		l.releaseSlot(w)
		return nil, fmt.Errorf("waiting for other calls: %w", context.Cause(ctx))
	}
	return func() { l.releaseSlot(w) }, nil
}

// grantSlots gives free slots to waiters that may have one, in order. The caller holds the lock.
func (l *ConcurrencyLimiter) grantSlots() {
	l.waiting = slices.DeleteFunc(l.waiting, func(w *waiter) bool {
		if l.free == 0 || w.owner != "" && !l.share(l.held[w.owner], l.free) {
			return false
		}
		l.free--
		l.held[w.owner]++
		close(w.served)
		return true
	})
}

// releaseSlot returns the slot of a waiter or ends its wait. Its owner's other waiters then go to the end.
func (l *ConcurrencyLimiter) releaseSlot(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, w); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.free++
	if l.held[w.owner]--; l.held[w.owner] == 0 {
		delete(l.held, w.owner)
	}
	l.moveWaitersToEnd(w.owner)
	l.grantSlots()
}

// moveWaitersToEnd lets the waiters of an owner wait behind all others. The caller holds the lock.
func (l *ConcurrencyLimiter) moveWaitersToEnd(owner string) {
	var others, own []*waiter
	for _, w := range l.waiting {
		if w.owner == owner && owner != "" {
			own = append(own, w)
		} else {
			others = append(others, w)
		}
	}
	l.waiting = slices.Concat(others, own)
}
