package reflector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/publish"
)

const (
	// unheard is how long the API server may tell nothing of a kind: it sends a bookmark about every minute.
	unheard = 3 * time.Minute
	// unacknowledged is how long publications may fail.
	unacknowledged = 5 * time.Second
)

// Health is what a leader knows of its own work; a standby's has nothing to tell. It outlives
// the terms of a leader.
type Health struct {
	mu sync.Mutex
	// kinds that are followed, by name; nil while this replica does not lead.
	kinds map[string]*kindHealth
	// acknowledged is what the bus takes; answered leaves out refusals, which another replica would meet, too.
	acknowledged, answered failing
	// checked is what the bus tells of its streams.
	checked failing
	// read is the start of the last read that the API server answered.
	read time.Time
}

type kindHealth struct {
	heard    time.Time
	complete bool
	err      error
}

// failing is since when something fails, and how; the zero value is that it does not.
type failing struct {
	since time.Time
	err   error
}

// note takes the outcome of an attempt that began at a time.
func (f *failing) note(began time.Time, err error) {
	switch {
	case err == nil:
		*f = failing{}
	case f.err == nil:
		f.since, f.err = began, err
	default:
		f.err = err
	}
}

func (f *failing) lasts() time.Duration {
	if f.err == nil {
		return 0
	}
	return time.Since(f.since)
}

// begin starts a term, and returns what ends it.
func (h *Health) begin(kinds []*kindReflector) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acknowledged, h.answered, h.checked, h.read = failing{}, failing{}, failing{}, time.Now()
	h.kinds = make(map[string]*kindHealth, len(kinds))
	for _, k := range kinds {
		if k.kind.Named { // One that cannot be listed holds up nobody.
			continue
		}
		h.kinds[k.label()] = &kindHealth{heard: time.Now()}
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.kinds = nil
	}
}

// published notes what became of a publication.
func (h *Health) published(began time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acknowledged.note(began, err)
	h.answered.note(began, unanswered(err))
}

// streamChecked notes what became of a check of the stream.
func (h *Health) streamChecked(began time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checked.note(began, unanswered(err))
}

// wasRead notes that the API server answered a read that began at a time.
func (h *Health) wasRead(began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read = began
}

// Unread returns for how long the API server has answered no read; 0 while this replica does not lead.
func (h *Health) Unread() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kinds == nil {
		return 0
	}
	return time.Since(h.read)
}

func unanswered(err error) error {
	if publish.Answered(err) {
		return nil
	}
	return err
}

// about changes what is known of a kind, which has just been heard of unless err tells why not.
func (h *Health) about(kind string, change func(*kindHealth)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.kinds[kind]; k != nil {
		change(k)
	}
}

func (h *Health) heard(kind string) {
	h.about(kind, func(k *kindHealth) { k.heard = time.Now() })
}

func (h *Health) completed(kind string) {
	h.about(kind, func(k *kindHealth) { k.complete, k.err = true, nil })
}

func (h *Health) interrupted(kind string, err error) {
	h.about(kind, func(k *kindHealth) { k.complete, k.err = false, err })
}

// Cluster is nil while all kinds are followed, each to the newest of which the API server tells.
func (h *Health) Cluster() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(h.kinds)) {
		k, silent := h.kinds[kind], time.Since(h.kinds[kind].heard)
		switch {
		case k.err != nil:
			errs = append(errs, fmt.Errorf("%s is not followed: %w", kind, k.err))
		case !k.complete:
			errs = append(errs, fmt.Errorf("%s is not on the bus yet", kind))
		case silent > unheard:
			errs = append(errs, fmt.Errorf("nothing heard of %s for %s", kind, silent.Round(time.Second)))
		}
	}
	return errors.Join(errs...)
}

// Bus is nil while the bus takes what is published.
func (h *Health) Bus() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kinds != nil && h.acknowledged.lasts() > unacknowledged {
		return fmt.Errorf("nothing acknowledged for %s: %w", h.acknowledged.lasts().Round(time.Second), h.acknowledged.err)
	}
	return nil
}

// Unanswered is for how long the bus has answered neither a publication nor a look at its streams.
func (h *Health) Unanswered() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kinds == nil {
		return 0
	}
	return max(h.answered.lasts(), h.checked.lasts())
}
