package limiter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// slots counts the slots of the limiters, and mostOfOne those of an owner that is alone.
const (
	slots     = 64
	mostOfOne = 8
)

// newEighths returns a limiter in which an owner may hold an eighth of the free slots.
func newEighths() *ConcurrencyLimiter {
	return New(slots, func(held, free int) bool { return held*mostOfOne < free })
}

// hold takes a slot and keeps it until ctx ends.
func hold(ctx context.Context, s *ConcurrencyLimiter, namespace string, got func()) {
	release, err := s.Acquire(ctx, namespace)
	if err != nil {
		return
	}
	got()
	<-ctx.Done()
	release()
}

func TestBusyNamespacesDoNotDelayAnotherNamespace(t *testing.T) {
	for _, busy := range []int{1, slots / mostOfOne, 16} {
		t.Run(fmt.Sprint(busy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newEighths()
				ctx, cancel := context.WithCancel(t.Context())
				var asking sync.WaitGroup
				for i := range busy * slots {
					asking.Go(func() { hold(ctx, s, fmt.Sprint("busy-", i%busy), func() {}) })
				}
				synctest.Wait()
				if busy == 1 && s.held["busy-0"] != mostOfOne {
					t.Errorf("one that is alone has %d", s.held["busy-0"])
				}
				release, err := s.Acquire(t.Context(), "quiet")
				if err != nil {
					t.Fatal(err)
				}
				release()
				cancel()
				asking.Wait()
			})
		})
	}
}

func TestOwnerWithoutSlotIsServedBeforeOwnerWithSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEighths()
		ctx, cancel := context.WithCancel(t.Context())
		first, giveBackOne := context.WithCancel(ctx)
		var asking sync.WaitGroup
		asking.Go(func() { hold(first, s, "first", func() {}) })
		for i := range slots - 1 {
			asking.Go(func() { hold(ctx, s, fmt.Sprint("busy-", i), func() {}) })
		}
		synctest.Wait()
		served := make(chan string, slots)
		for _, namespace := range []string{"busy-0", "busy-1", "quiet"} {
			asking.Go(func() { hold(ctx, s, namespace, func() { served <- namespace }) })
			synctest.Wait()
		}
		giveBackOne()
		synctest.Wait()
		n := len(served)
		if namespace := <-served; n != 1 || namespace != "quiet" {
			t.Errorf("%d are served, %s first", n, namespace)
		}
		cancel()
		asking.Wait()
		if len(s.held) > 0 || len(s.waiting) > 0 || s.free != slots {
			t.Errorf("left are %v, %d wait, %d are free", s.held, len(s.waiting), s.free)
		}
	})
}

func TestOwnerWithManyCallsWaitsBehindLaterOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(1, func(held, _ int) bool { return held < 1 })
		var served []string
		ends := make(chan func(), 10)
		for _, owner := range []string{"busy", "busy", "busy", "quiet"} {
			go func() {
				release, err := s.Acquire(t.Context(), owner)
				if err != nil {
					t.Error(err)
				}
				served = append(served, owner)
				ends <- release
			}()
			synctest.Wait()
		}
		for range 4 {
			(<-ends)()
			synctest.Wait()
		}
		if want := []string{"busy", "quiet", "busy", "busy"}; !slices.Equal(served, want) {
			t.Errorf("got %q, want %q", served, want)
		}
	})
}
