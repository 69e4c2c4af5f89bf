// Package backoff waits between attempts, longer after each one.
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

// Delay returns the wait after an attempt; the first attempt is 1. The wait doubles from Min to Max. A random part of
// at most a half is subtracted, so that clients that failed together do not retry together.
func (b Backoff) Delay(attempt int) time.Duration {
	delay := b.Max
	if shift := max(attempt-1, 0); shift < 32 && b.Min<<shift > 0 {
		delay = min(delay, b.Min<<shift)
	}
	return delay - rand.N(delay/2+1)
}

// Wait waits for the [Backoff.Delay] of an attempt. It returns false if ctx ended first.
func (b Backoff) Wait(ctx context.Context, attempt int) bool { return Sleep(ctx, b.Delay(attempt)) }

// Sleep waits for d. It returns false if ctx ended first.
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
