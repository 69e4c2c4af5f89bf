package admission

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// hold takes a slot and keeps it until ctx ends.
func hold(ctx context.Context, s *requestSlots, namespace string, got func()) {
	release, err := s.acquireSlot(ctx, namespace)
	if err != nil {
		return
	}
	got()
	<-ctx.Done()
	release()
}

func TestHoweverMuchSomeNamespacesAskAnotherIsServedAtOnce(t *testing.T) {
	for _, busy := range []int{1, maxReviews / maxOfOne, 16} {
		t.Run(fmt.Sprint(busy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRequestSlots()
				ctx, cancel := context.WithCancel(t.Context())
				var asking sync.WaitGroup
				for i := range busy * maxReviews {
					asking.Go(func() { hold(ctx, s, fmt.Sprint("busy-", i%busy), func() {}) })
				}
				synctest.Wait()
				if busy == 1 && s.held["busy-0"] != maxOfOne {
					t.Errorf("one that is alone has %d", s.held["busy-0"])
				}
				release, err := s.acquireSlot(t.Context(), "quiet")
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

func TestWhoHasNothingIsServedBeforeWhoHasSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRequestSlots()
		ctx, cancel := context.WithCancel(t.Context())
		first, giveBackOne := context.WithCancel(ctx)
		var asking sync.WaitGroup
		asking.Go(func() { hold(first, s, "first", func() {}) })
		for i := range maxReviews - 1 {
			asking.Go(func() { hold(ctx, s, fmt.Sprint("busy-", i), func() {}) })
		}
		synctest.Wait()
		served := make(chan string, maxReviews)
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
		if len(s.held) > 0 || len(s.waiting) > 0 || s.free != maxReviews {
			t.Errorf("left are %v, %d wait, %d are free", s.held, len(s.waiting), s.free)
		}
	})
}
