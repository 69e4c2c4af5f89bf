package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
)

func TestDelayDoublesWithinBounds(t *testing.T) {
	b := backoff.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for attempt, want := range map[int]time.Duration{
		-1: 100 * time.Millisecond, 0: 100 * time.Millisecond, 1: 100 * time.Millisecond, 2: 200 * time.Millisecond,
		4: 800 * time.Millisecond, 5: time.Second, 10: time.Second, 1 << 40: time.Second,
	} {
		for range 100 {
			if got := b.Delay(attempt); got < want/2 || got > want {
				t.Fatalf("attempt %d waits %s, want %s to %s", attempt, got, want/2, want)
			}
		}
	}
}

func TestDelayIsJittered(t *testing.T) {
	b, seen := backoff.Backoff{Min: time.Hour, Max: time.Hour}, map[time.Duration]bool{}
	for range 10 {
		seen[b.Delay(1)] = true
	}
	if len(seen) == 1 {
		t.Error("all come back together")
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backoff.Backoff{Min: time.Minute, Max: time.Hour}
		start := time.Now()
		if !b.Wait(t.Context(), 1) || time.Since(start) > time.Minute {
			t.Errorf("waited %s", time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if b.Wait(ctx, 20) || time.Since(start) != time.Second {
			t.Errorf("waited %s beyond its context", time.Since(start))
		}
	})
}
