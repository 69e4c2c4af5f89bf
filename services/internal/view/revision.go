package view

import (
	"context"
	"fmt"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Revision names what the view holds: every change up to some place in the stream of
// changes. It is for people, for comparing, and for [View.Await].
func (v *View) Revision() string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return topology.Revision(v.position, v.incarnation)
}

// Changed is where in the stream the last change is that the view holds. While nothing changes it is the same for all replicas; what they
// have read goes on, by the marks that they make.
func (v *View) Changed() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.changed
}

// Digest stands for the states of all live objects that the view holds: replicas at one place in the stream have the same one.
func (v *View) Digest() (digest uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, t := range v.tables {
		digest ^= t.digest()
	}
	return digest
}

// Await waits until the view holds all that a place in a stream, by [topology.ParseRevision], says that
// somebody knows, for as long as it takes the view to make sure that it holds what the stream does.
// A later stream holds that from the start. The error wraps [ErrIncomplete].
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
