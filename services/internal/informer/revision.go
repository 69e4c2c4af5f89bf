package informer

import (
	"context"
	"fmt"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Revision names the content of the informer: all changes up to a position of the stream. Users compare revisions, and
// [Informer.AwaitRevision] waits for one.
func (v *Informer) Revision() string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return topology.FormatRevision(v.position, v.streamID)
}

// LastChangeSequence returns the sequence of the last change that the informer holds. All replicas return the same
// sequence while nothing changes. Barriers do not advance it.
func (v *Informer) LastChangeSequence() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.changed
}

// ContentDigest returns a hash of the states of all live objects. Replicas at the same position return the same
// digest.
func (v *Informer) ContentDigest() (digest uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, t := range v.tables {
		digest ^= t.contentDigest()
	}
	return digest
}

// AwaitRevision waits until the informer has read up to a sequence of the stream that was created at
// streamCreated (see [topology.ParseRevision]). A stream that was created later satisfies every earlier revision.
// AwaitRevision waits at most verifyInterval plus catchUpTimeout. The error wraps [ErrIncomplete].
func (v *Informer) AwaitRevision(ctx context.Context, sequence uint64, streamCreated time.Time) error {
	waiting, cancel := context.WithTimeout(ctx, verifyInterval+catchUpTimeout)
	defer cancel()
	for !v.hasReadUpTo(sequence, streamCreated) {
		if !backoff.Sleep(waiting, verifyInterval/200) {
			return fmt.Errorf("%w: it has read up to %s, and revision %d of %s is needed",
				ErrIncomplete, v.Revision(), sequence, streamCreated.Format(time.RFC3339Nano))
		}
	}
	return nil
}

func (v *Informer) hasReadUpTo(sequence uint64, streamCreated time.Time) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	life, err := time.Parse(time.RFC3339Nano, v.streamID)
	return err == nil && !v.loading && (life.After(streamCreated) || life.Equal(streamCreated) && v.position >= sequence)
}
