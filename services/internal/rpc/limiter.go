package rpc

import (
	"context"

	"github.com/entail-dev/entail/services/internal/limiter"
)

// CallLimiter bounds how many costly calls run at a time. The others wait. A known caller has at most half of the
// slots, so one caller cannot block all others.
type CallLimiter struct{ slots *limiter.ConcurrencyLimiter }

// NewCallLimiter returns a limiter for n concurrent calls.
func NewCallLimiter(n int) *CallLimiter {
	return &CallLimiter{limiter.New(n, func(held, _ int) bool { return held < (n+1)/2 })}
}

// Acquire waits for a slot. The caller must call release when the work is done.
func (t *CallLimiter) Acquire(ctx context.Context) (release func(), err error) {
	caller, _ := CallerFromContext(ctx)
	return t.slots.Acquire(ctx, caller.Username)
}
