package reflector

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Doubts are the kinds whose resource versions went back, and since when. They outlive the terms as leader.
type Doubts struct {
	mu    sync.Mutex
	kinds map[string]doubt
}

// doubt is about one kind.
type doubt struct {
	since time.Time
	cause error
}

// NewDoubts makes none.
func NewDoubts() *Doubts { return &Doubts{kinds: map[string]doubt{}} }

// Err is nil unless some kind's resource versions are back in time. It says what comes of that.
func (d *Doubts) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(d.kinds)) {
		errs = append(errs, d.kinds[kind].cause)
	}
	return errors.Join(errs...)
}

// add notes what is wrong with a kind, and tells since when something is.
func (d *Doubts) add(kind string, cause error) (since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	about, ok := d.kinds[kind]
	if !ok {
		about.since = time.Now()
	}
	about.cause = cause
	d.kinds[kind] = about
	return about.since
}

func (d *Doubts) end(kind string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.kinds, kind)
}

// forget drops what only a leader knows.
func (d *Doubts) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.kinds)
}
