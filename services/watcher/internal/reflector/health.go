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
	// unheard bounds the time without an event of a kind. The API server sends a bookmark about every minute.
	unheard = 3 * time.Minute
	// unacknowledged bounds the time in which all publications fail, or no barrier can be written.
	unacknowledged = 5 * time.Second
)

// Health holds the state of a leader's work. It is empty on a standby. It outlives the terms of a leader.
type Health struct {
	mu sync.Mutex
	// kinds holds the followed kinds by name. It is nil while this replica does not lead.
	kinds map[string]*kindHealth
	// acknowledged covers publications. answered leaves out refusals, which another replica would get too.
	acknowledged, answered failurePeriod
	// checked covers the checks of the streams, barrier the attempts to write a barrier.
	checked, barrier failurePeriod
	// read is the start of the last read that the API server answered.
	read time.Time
}

type kindHealth struct {
	heard    time.Time
	complete bool
	err      error
}

// failurePeriod holds the start of a failure and its last error. The zero value means no failure.
type failurePeriod struct {
	since time.Time
	err   error
}

// recordAttempt records the outcome of an attempt that started at began.
func (f *failurePeriod) recordAttempt(began time.Time, err error) {
	switch {
	case err == nil:
		*f = failurePeriod{}
	case f.err == nil:
		f.since, f.err = began, err
	default:
		f.err = err
	}
}

func (f *failurePeriod) failingFor() time.Duration {
	if f.err == nil {
		return 0
	}
	return time.Since(f.since)
}

// beginTerm starts a term, and returns the function that ends it.
func (h *Health) beginTerm(kinds []*kindReflector) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acknowledged, h.answered, h.checked, h.barrier, h.read = failurePeriod{}, failurePeriod{}, failurePeriod{}, failurePeriod{}, time.Now()
	h.kinds = make(map[string]*kindHealth, len(kinds))
	for _, k := range kinds {
		if k.kind.ReferencedOnly { // A namespace whose Secrets cannot be listed must not delay the rest.
			continue
		}
		h.kinds[k.kindLabel()] = &kindHealth{heard: time.Now()}
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.kinds = nil
	}
}

// recordPublication records the outcome of a publication.
func (h *Health) recordPublication(began time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acknowledged.recordAttempt(began, err)
	h.answered.recordAttempt(began, unansweredError(err))
}

// recordStreamCheck records the outcome of a check of the stream.
func (h *Health) recordStreamCheck(began time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checked.recordAttempt(began, unansweredError(err))
}

// recordBarrier records the reason why no barrier was written; nil means that one was written. It returns for how long
// no barrier was written.
func (h *Health) recordBarrier(at time.Time, cause error) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.barrier.recordAttempt(at, cause)
	return h.barrier.failingFor()
}

// recordAPIServerRead notes that the API server answered a read that began at a time.
func (h *Health) recordAPIServerRead(began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read = began
}

// APIServerSilence returns for how long the API server has answered no read; 0 while this replica does not lead.
func (h *Health) APIServerSilence() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kinds == nil {
		return 0
	}
	return time.Since(h.read)
}

func unansweredError(err error) error {
	if publish.IsServerResponse(err) {
		return nil
	}
	return err
}

// updateKindHealth changes the state of a followed kind.
func (h *Health) updateKindHealth(kind string, change func(*kindHealth)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.kinds[kind]; k != nil {
		change(k)
	}
}

func (h *Health) recordKindAnswer(kind string) {
	h.updateKindHealth(kind, func(k *kindHealth) { k.heard = time.Now() })
}

func (h *Health) recordKindComplete(kind string) {
	h.updateKindHealth(kind, func(k *kindHealth) { k.complete, k.err = true, nil })
}

func (h *Health) recordKindInterrupted(kind string, err error) {
	h.updateKindHealth(kind, func(k *kindHealth) { k.complete, k.err = false, err })
}

// ClusterErr returns nil while all kinds are followed up to the API server's newest state.
func (h *Health) ClusterErr() error {
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
			errs = append(errs, fmt.Errorf("the API server has reported nothing about %s for %s", kind, silent.Round(time.Second)))
		}
	}
	return errors.Join(errs...)
}

// BusErr returns nil while NATS accepts publications.
func (h *Health) BusErr() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kinds != nil && h.acknowledged.failingFor() > unacknowledged {
		return fmt.Errorf("nothing acknowledged for %s: %w", h.acknowledged.failingFor().Round(time.Second), h.acknowledged.err)
	}
	return nil
}

// BarrierErr returns nil while barriers are written. Without them every service counts as incomplete.
func (h *Health) BarrierErr() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kinds != nil && h.barrier.failingFor() > unacknowledged {
		return fmt.Errorf("none written for %s: %w", h.barrier.failingFor().Round(time.Second), h.barrier.err)
	}
	return nil
}

// BusSilence returns how long NATS has not answered either publications or checks of its streams.
func (h *Health) BusSilence() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kinds == nil {
		return 0
	}
	return max(h.answered.failingFor(), h.checked.failingFor())
}
