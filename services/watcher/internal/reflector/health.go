package reflector

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Health is what a person should know of the API server's truthfulness. It outlives the terms as leader.
type Health struct {
	mu     sync.Mutex
	doubts map[string]doubt
}

// doubt is about one kind.
type doubt struct {
	since time.Time
	cause error
}

// NewHealth makes one that knows of nothing wrong.
func NewHealth() *Health { return &Health{doubts: map[string]doubt{}} }

// Err is nil unless some kind's resource versions are back in time. It says what comes of that.
func (h *Health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(h.doubts)) {
		errs = append(errs, h.doubts[kind].cause)
	}
	return errors.Join(errs...)
}

// doubt notes what is wrong with a kind, and tells since when something is.
func (h *Health) doubt(kind string, cause error) (since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, ok := h.doubts[kind]
	if !ok {
		d.since = time.Now()
	}
	d.cause = cause
	h.doubts[kind] = d
	return d.since
}

func (h *Health) trust(kind string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.doubts, kind)
}

// forget drops what only a leader knows.
func (h *Health) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.doubts)
}
