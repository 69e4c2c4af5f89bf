// Package backoff waits: for a moment, or longer with every attempt.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff bounds the wait between two attempts.
type Backoff struct {
	Min, Max time.Duration
}

// Delay is how long to wait after an attempt; 1 is the first. It doubles from Min to Max, less
// up to a half at random, so that those who failed together do not come back together.
func (b Backoff) Delay(attempt int) time.Duration {
	delay := b.Max
	if shift := max(attempt-1, 0); shift < 32 && b.Min<<shift > 0 {
		delay = min(delay, b.Min<<shift)
	}
	return delay - rand.N(delay/2+1)
}

// Wait waits for the [Backoff.Delay] of an attempt; false when ctx ended first.
func (b Backoff) Wait(ctx context.Context, attempt int) bool { return Sleep(ctx, b.Delay(attempt)) }

// Sleep waits for d; false when ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
