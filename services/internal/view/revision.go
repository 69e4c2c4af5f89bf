package view

import (
	"context"
	"fmt"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Revision names the content of the view: all changes up to a position in the stream. People compare it, and
// [View.Await] accepts it.
func (v *View) Revision() string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return topology.Revision(v.position, v.incarnation)
}

// Changed returns the sequence of the last change that the view holds. Unlike the position, which barriers
// advance, it is equal on all replicas while nothing changes.
func (v *View) Changed() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.changed
}

// Digest returns a hash over the states of all live objects. Replicas at one position have the same digest.
func (v *View) Digest() (digest uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, t := range v.tables {
		digest ^= t.digest()
	}
	return digest
}

// Await waits until the view holds everything up to a sequence of the stream that began at a time (see
// [topology.ParseRevision]). A stream that began later holds everything from its start. Await waits at most as long as
// one check of the view takes. The error wraps [ErrIncomplete].
func (v *View) Await(ctx context.Context, sequence uint64, began time.Time) error {
	waiting, cancel := context.WithTimeout(ctx, verifyInterval+catchUpTimeout)
	defer cancel()
	for !v.holds(sequence, began) {
		if !backoff.Sleep(waiting, verifyInterval/200) {
			return fmt.Errorf("%w: it is at %s, and was asked for %d of %s",
				ErrIncomplete, v.Revision(), sequence, began.Format(time.RFC3339Nano))
		}
	}
	return nil
}

func (v *View) holds(sequence uint64, began time.Time) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	life, err := time.Parse(time.RFC3339Nano, v.incarnation)
	return err == nil && !v.loading && (life.After(began) || life.Equal(began) && v.position >= sequence)
}
