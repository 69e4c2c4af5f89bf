package reflector

import (
	"context"
	"math/rand/v2"
	"time"
)

// pause waits longer with every attempt; false when ctx ended.
func pause(ctx context.Context, attempt int) bool {
	const doublings = 6
	limit := min(minRetry<<min(attempt, doublings), maxRetry)
	return sleep(ctx, limit/2+rand.N(limit/2))
}

// sleep is false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
