package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// maxReviews bounds the concurrent requests. maxOfOne bounds those of one namespace, or of one user for cluster-scoped
// objects.
const (
	maxReviews = 64
	maxOfOne   = 8
)

// requestSlots limits concurrent requests. A namespace gets another slot only if it holds less than an eighth of the
// free slots. So a single busy namespace gets eight slots, and fewer if other namespaces are busy. Some slots always
// remain for a namespace that holds none.
type requestSlots struct {
	mu   sync.Mutex
	free int
	// held counts the slots per namespace.
	held map[string]int
	// waiting lists the waiting requests in order of arrival.
	waiting []*slotWaiter
}

type slotWaiter struct {
	namespace string
	served    chan struct{}
}

func newRequestSlots() *requestSlots { return &requestSlots{free: maxReviews, held: map[string]int{}} }

// acquireSlot waits for a slot until ctx ends. The caller must call release.
func (s *requestSlots) acquireSlot(ctx context.Context, namespace string) (release func(), err error) {
	w := &slotWaiter{namespace, make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grantSlots()
	s.mu.Unlock()
	select {
	case <-w.served:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		s.releaseSlot(w)
		return nil, fmt.Errorf("waiting for other requests: %w", err)
	}
	return func() { s.releaseSlot(w) }, nil
}

// grantSlots gives free slots to the waiting requests that may have one, in order of arrival. The caller holds the
// lock.
func (s *requestSlots) grantSlots() {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *slotWaiter) bool {
		if s.held[w.namespace]*maxOfOne >= s.free {
			return false
		}
		s.free--
		s.held[w.namespace]++
		close(w.served)
		return true
	})
}

// releaseSlot returns the slot of a request, or removes the request if it still waits.
func (s *requestSlots) releaseSlot(w *slotWaiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return
	}
	s.free++
	if s.held[w.namespace]--; s.held[w.namespace] == 0 {
		delete(s.held, w.namespace)
	}
	s.grantSlots()
}
