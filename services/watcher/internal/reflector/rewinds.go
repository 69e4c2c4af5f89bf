package reflector

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Rewinds are the kinds whose resource versions went back, and since when. They outlive the terms as leader.
type Rewinds struct {
	mu    sync.Mutex
	kinds map[string]rewind
}

// rewind is about one kind.
type rewind struct {
	since time.Time
	cause error
}

// NewRewinds makes none.
func NewRewinds() *Rewinds { return &Rewinds{kinds: map[string]rewind{}} }

// Err is nil unless some kind's resource versions are back in time. It says what comes of that.
func (r *Rewinds) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		errs = append(errs, r.kinds[kind].cause)
	}
	return errors.Join(errs...)
}

// add notes what is wrong with a kind, and tells since when something is.
func (r *Rewinds) add(kind string, cause error) (since time.Time) {
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

func (r *Rewinds) end(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kinds, kind)
}

// forget drops what only a leader knows.
func (r *Rewinds) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.kinds)
}
