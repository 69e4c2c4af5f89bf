package reflector

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// RewoundKinds holds the kinds whose resource versions went back, with the times. It outlives the terms as leader.
type RewoundKinds struct {
	mu    sync.Mutex
	kinds map[string]kindRewind
}

// kindRewind describes one kind.
type kindRewind struct {
	since time.Time
	cause error
}

// NewRewoundKinds returns an empty RewoundKinds.
func NewRewoundKinds() *RewoundKinds { return &RewoundKinds{kinds: map[string]kindRewind{}} }

// Err returns nil unless the resource versions of a kind went back. The error contains the consequences.
func (r *RewoundKinds) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		errs = append(errs, r.kinds[kind].cause)
	}
	return errors.Join(errs...)
}

// recordRewind records the problem of a kind, and returns when the problem began.
func (r *RewoundKinds) recordRewind(kind string, cause error) (since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	about, ok := r.kinds[kind]
	if !ok {
		about.since = time.Now()
	}
	about.cause = cause
	r.kinds[kind] = about
	return about.since
}

func (r *RewoundKinds) removeRewind(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kinds, kind)
}

// removeAllRewinds deletes the values that only a leader can report.
func (r *RewoundKinds) removeAllRewinds() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.kinds)
}
