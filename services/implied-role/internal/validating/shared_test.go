package validating

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/singleflight"
)

func TestCoalesceReadSharesLaterRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			reads            singleflight.Group
			began, at, worst atomic.Int32
			group            sync.WaitGroup
		)
		read := func(context.Context) (time.Time, error) {
			began.Add(1)
			worst.Store(max(worst.Load(), at.Add(1)))
			defer at.Add(-1)
			now := time.Now()
			<-time.After(time.Second)
			return now, nil
		}
		for i := range 100 {
			group.Go(func() {
				<-time.After(time.Duration(i) * 10 * time.Millisecond)
				asked := time.Now()
				if when, err := coalesceRead(t.Context(), &reads, "x", read); err != nil || when.Before(asked) {
					t.Errorf("asked at %v, it was read at %v, %v", asked, when, err)
				}
			})
		}
		group.Wait()
		if began.Load() != 2 || worst.Load() != 1 {
			t.Errorf("it was read %d times, %d at a time", began.Load(), worst.Load())
		}
	})
}

func TestCoalesceReadSurvivesCanceledCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads singleflight.Group
		refused := errors.New("on purpose")
		gone, cancel := context.WithCancel(t.Context())
		read := func(ctx context.Context) (int, error) {
			cancel()
			<-time.After(time.Second)
			return 1, errors.Join(ctx.Err(), refused)
		}
		if _, err := coalesceRead(gone, &reads, "x", read); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if is, err := coalesceRead(t.Context(), &reads, "x", read); is != 1 || !errors.Is(err, refused) || errors.Is(err, context.Canceled) {
			t.Errorf("it is %d, %v", is, err)
		}
	})
}
