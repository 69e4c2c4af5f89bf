package admission

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// How many requests are judged at a time, in all and of one namespace. Others wait: whoever asks much
// in one namespace keeps those out of none.
const (
	maxReviews = 64
	maxOfOne   = 8
)

// slots are what requests wait for.
type slots struct {
	all *semaphore.Weighted

	mu sync.Mutex
	// of has those of the namespaces in which somebody has one or waits.
	of map[string]*share
}

type share struct {
	slots *semaphore.Weighted
	users int
}

func newSlots() *slots {
	return &slots{all: semaphore.NewWeighted(maxReviews), of: map[string]*share{}}
}

// take waits for a slot until ctx ends.
func (s *slots) take(ctx context.Context, namespace string) (giveBack func(), err error) {
	own := s.join(namespace)
	if err := own.slots.Acquire(ctx, 1); err != nil {
		s.leave(namespace)
		return nil, fmt.Errorf("waiting for %d other requests of the namespace: %w", maxOfOne, err)
	}
	if err := s.all.Acquire(ctx, 1); err != nil {
		own.slots.Release(1)
		s.leave(namespace)
		return nil, fmt.Errorf("waiting for %d other requests: %w", maxReviews, err)
	}
	return func() {
		s.all.Release(1)
		own.slots.Release(1)
		s.leave(namespace)
	}, nil
}

func (s *slots) join(namespace string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, ok := s.of[namespace]
	if !ok {
		own = &share{slots: semaphore.NewWeighted(maxOfOne)}
		s.of[namespace] = own
	}
	own.users++
	return own
}

func (s *slots) leave(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[namespace]
	if own.users--; own.users == 0 {
		delete(s.of, namespace)
	}
}
