package setup

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
)

// callHangingOpenFGA calls OpenFGA and waits until ctx ends. If silent is true, the call gets no answer.
func callHangingOpenFGA(ctx context.Context, silent bool) error {
	answered := fga.RecordCallStart(ctx)
	if silent {
		<-ctx.Done()
		answered(fault.Unavailable(ctx.Err()))
		return ctx.Err()
	}
	answered(nil)
	<-ctx.Done()
	return nil
}

func TestOutageReporterWaitsAndLimitsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 50
		var mu sync.Mutex
		told := map[int]time.Duration{}
		begun := time.Now()
		o := NewOutageReporter(slog.New(slog.DiscardHandler), func(ctx context.Context, key int, why Outage) error {
			if err := why.WaitForStatusRateLimit(ctx); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if _, again := told[key]; !again {
				told[key] = time.Since(begun)
			}
			if !why.Since.Equal(begun) {
				t.Errorf("key %d: since %s", key, why.Since)
			}
			return errors.New("written by somebody else meanwhile")
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = o.Run(ctx) })
		for key := range keys {
			running.Go(func() {
				_ = o.RunReconcile(ctx, key, func(ctx context.Context) error { return callHangingOpenFGA(ctx, key < keys-1) })
			})
		}
		synctest.Wait()
		<-time.After(outageGracePeriod - time.Millisecond)
		mu.Lock()
		if len(told) > 0 {
			t.Errorf("got %d reports before the time patience", len(told))
		}
		mu.Unlock()
		<-time.After(outageGracePeriod)
		mu.Lock()
		if len(told) != keys-1 {
			t.Errorf("got %d reports, want %d", len(told), keys-1)
		}
		for key, when := range told {
			if when < outageGracePeriod {
				t.Errorf("key %d: reported after %s", key, when)
			}
		}
		mu.Unlock()
		cancel()
		running.Wait()
	})
}
