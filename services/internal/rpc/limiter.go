package rpc

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// CallLimiter bounds how many expensive calls run at the same time. Further calls wait. An authenticated caller has at
// most half of the slots, so one caller cannot block all others.
type CallLimiter struct {
	all  *semaphore.Weighted
	each int64

	mu sync.Mutex
	// lines holds the queue of each authenticated caller that has a slot or waits for one.
	lines map[string]*callerQueue
}

// callerQueue is the queue of one caller's calls.
type callerQueue struct {
	slots *semaphore.Weighted
	calls int
}

// NewLimiter returns a limiter for n concurrent calls.
func NewLimiter(n int) *CallLimiter {
	return &CallLimiter{all: semaphore.NewWeighted(int64(n)), each: int64(n+1) / 2, lines: map[string]*callerQueue{}}
}

// Acquire waits for a slot. The caller must call release when the work is done.
func (t *CallLimiter) Acquire(ctx context.Context) (release func(), err error) {
	leave, err := t.acquireCallerSlot(ctx)
	if err == nil {
		if err = t.all.Acquire(ctx, 1); err == nil {
			return func() { t.all.Release(1); leave() }, nil
		}
		leave()
	}
	return nil, fmt.Errorf("waiting for others to be answered: %w", context.Cause(ctx))
}

// acquireCallerSlot waits for a slot among the calls of the same caller. It does not wait if the caller is not
// authenticated.
func (t *CallLimiter) acquireCallerSlot(ctx context.Context) (leave func(), err error) {
	caller, known := CallerFromContext(ctx)
	if !known {
		return func() {}, nil
	}
	l := t.joinQueue(caller.Username)
	if err := l.slots.Acquire(ctx, 1); err != nil {
		t.leaveQueue(caller.Username)
		return nil, err
	}
	return func() { l.slots.Release(1); t.leaveQueue(caller.Username) }, nil
}

func (t *CallLimiter) joinQueue(caller string) *callerQueue {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[caller]
	if l == nil {
		l = &callerQueue{slots: semaphore.NewWeighted(t.each)}
		t.lines[caller] = l
	}
	l.calls++
	return l
}

func (t *CallLimiter) leaveQueue(caller string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lines[caller]; l.calls > 1 {
		l.calls--
		return
	}
	delete(t.lines, caller)
}
