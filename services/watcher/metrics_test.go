package watcher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestDeadLettersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(prometheus.NewRegistry())
		counts := []func() (uint64, error){
			func() (uint64, error) { return 3, nil },
			func() (uint64, error) { return 0, errors.New("the bus is away") },
			func() (uint64, error) { return 1, nil },
		}
		ctx, cancel := context.WithCancel(t.Context())
		next := 0
		done := make(chan error, 1)
		go func() {
			done <- m.pollDeadLetterCount(ctx, func(context.Context) (uint64, error) {
				next++
				return counts[next-1]()
			})
		}()
		for _, want := range []float64{3, 3, 1} {
			synctest.Wait()
			if got := testutil.ToFloat64(m.letters); got != want {
				t.Errorf("%v dead letters, want %v", got, want)
			}
			if want != 1 {
				<-time.After(countInterval)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
