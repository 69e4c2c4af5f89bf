package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// How many requests are judged at a time, in all, and of one namespace that is alone, or one user where there is none.
const (
	maxReviews = 64
	maxOfOne   = 8
)

// slots are what requests wait for. A namespace gets another one only while it has less than an eighth of
// what is left: eight if it is alone, and the fewer the more ask. So something is left for who has none.
type slots struct {
	mu   sync.Mutex
	free int
	// held are those of each namespace that has any.
	held map[string]int
	// waiting are in the order in which they came.
	waiting []*waiter
}

type waiter struct {
	namespace string
	served    chan struct{}
}

func newSlots() *slots { return &slots{free: maxReviews, held: map[string]int{}} }

// take waits for a slot until ctx ends.
func (s *slots) take(ctx context.Context, namespace string) (giveBack func(), err error) {
	w := &waiter{namespace, make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.serve()
	s.mu.Unlock()
	select {
	case <-w.served:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		s.leave(w)
		return nil, fmt.Errorf("waiting for other requests: %w", err)
	}
	return func() { s.leave(w) }, nil
}

// serve gives slots to those who may have one, whoever came first first; the caller holds the lock.
func (s *slots) serve() {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool {
		if s.held[w.namespace]*maxOfOne >= s.free {
			return false
		}
		s.free--
		s.held[w.namespace]++
		close(w.served)
		return true
	})
}

// leave takes back what a waiter was given, or ends its wait.
func (s *slots) leave(w *waiter) {
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
	s.serve()
}
