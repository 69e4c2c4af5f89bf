package reflector

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Rewinds holds the kinds whose resource versions went back, with the times. It outlives the terms as leader.
type Rewinds struct {
	mu    sync.Mutex
	kinds map[string]rewind
}

// rewind describes one kind.
type rewind struct {
	since time.Time
	cause error
}

// NewRewinds returns an empty Rewinds.
func NewRewinds() *Rewinds { return &Rewinds{kinds: map[string]rewind{}} }

// Err returns nil unless the resource versions of a kind went back. The error contains the consequences.
func (r *Rewinds) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		errs = append(errs, r.kinds[kind].cause)
	}
	return errors.Join(errs...)
}

// recordRewind records the problem of a kind, and returns when the problem began.
func (r *Rewinds) recordRewind(kind string, cause error) (since time.Time) {
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

func (r *Rewinds) removeRewind(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kinds, kind)
}

// removeAllRewinds deletes the values that only a leader can report.
func (r *Rewinds) removeAllRewinds() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.kinds)
}
