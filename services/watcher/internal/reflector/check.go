package reflector

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/publish"
)

// checkStreams compares the streams with their configuration and content until ctx ends. Another client may delete,
// purge, replace or change them, and NATS would not report it.
func (r *reflector) checkStreams(ctx context.Context) {
	for backoff.Sleep(ctx, r.cfg.CheckInterval) {
		began := time.Now()
		err := r.checkStreamsOnce(ctx)
		r.cfg.Health.recordStreamCheck(began, err)
		if err != nil && ctx.Err() == nil {
			r.warnings.Do(func() { r.cfg.Log.WarnContext(ctx, "stream cannot be checked", "error", err) })
		}
	}
}

func (r *reflector) checkStreamsOnce(ctx context.Context) error {
	if err := r.repairStreams(ctx); err != nil {
		return err
	}
	look, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	streamID, err := r.ensureStreamID(look)
	if err != nil {
		return err
	}
	for _, k := range r.kinds {
		if err := k.checkKindOnStream(ctx, streamID); err != nil {
			return err
		}
	}
	return r.targets.checkTargetKinds(ctx, streamID)
}

// checkKindOnStream verifies the snapshot marker and one message. A purged stream lacks every message. A stream that
// was restored from a backup, or lost unsynced writes, lacks the last one.
func (k *kindReflector) checkKindOnStream(ctx context.Context, streamID string) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	k.mu.Lock()
	synced, stream, restart, due := k.sweep == nil && k.stream != "" && !k.doubted, k.stream, k.restart, time.Now().After(k.due)
	probe, silent, outdated := k.selectMessageToVerify(), k.isWatchSilent(time.Now()), k.sweep != nil && k.sweep.streamID != streamID
	k.mu.Unlock()
	if outdated {
		// The sweep began on an earlier stream. Its marker could wait for ever for the markers of targets, which name the
		// present stream.
		k.restartRelist()
	}
	if !synced {
		return nil
	}
	if silent {
		restart(errSilent)
		return nil
	}
	if due {
		restart(errDue)
		return nil
	}
	if stream != streamID {
		k.restartRelist()
		return nil
	}
	marked, err := k.hasExpectedMarker(ctx, streamID)
	if err == nil && !marked {
		k.restartRelist()
	}
	if err != nil || !marked || probe.name.Name == "" {
		return err
	}
	return k.relistIfProbeMissing(ctx, probe)
}

// hasExpectedMarker reports whether the stream with this ID holds the right marker, if the kind needs one.
func (k *kindReflector) hasExpectedMarker(ctx context.Context, streamID string) (bool, error) {
	if k.kind.ReferencedOnly {
		return true, nil
	}
	written, err := k.cfg.Publisher.LastMarker(ctx, k.cfg.Cluster, k.kind.GroupResource)
	if isMissingOrMalformed(err) {
		return false, nil
	}
	return written.GetStream() == streamID && k.right(written), err
}

// maxSkip bounds the entries that a random choice skips. The start of an iteration is random enough only in a large
// map.
const maxSkip = 64

// selectMessageToVerify selects a message to verify: the suspect, if any, else in turns the newest one, even a
// deletion, and one of any object.
func (k *kindReflector) selectMessageToVerify() publishedMessage {
	k.turn++
	switch {
	case k.isExpectedOnStream(k.suspect):
		return k.suspect
	case k.turn%2 == 0 && k.newest.sequence > 0:
		return k.newest
	}
	skip := rand.N(max(1, min(len(k.heads), maxSkip)))
	for name, head := range k.heads {
		if skip == 0 {
			return publishedMessage{name, head.sequence}
		}
		skip--
	}
	return publishedMessage{}
}

// isExpectedOnStream reports whether a message should still be on the stream.
func (k *kindReflector) isExpectedOnStream(m publishedMessage) bool {
	return m.sequence > 0 && (m == k.newest || m.sequence == k.heads[m.name].sequence)
}

// recordForeignVersion records the version of another publisher's message. The caller must hold the lock.
func (k *kindReflector) recordForeignVersion(by publish.Entry) {
	if by.Epoch == k.epoch {
		k.ahead = laterVersion(by.Version, k.ahead)
	}
}

// relistIfProbeMissing starts a new sweep if a message is missing twice. A message missing once may only be a replica
// of the stream that lags. An expired deletion that was the newest message is missing too; the sweep then finds no
// difference.
func (k *kindReflector) relistIfProbeMissing(ctx context.Context, probe publishedMessage) error {
	last, err := k.cfg.Publisher.LastChange(ctx, k.keyOf(probe.name))
	missing := errors.Is(err, publish.ErrNoMessage) || errors.Is(err, publish.ErrMalformed) || err == nil && last.Sequence < probe.sequence
	if err != nil && !missing {
		return err
	}
	k.mu.Lock()
	if err == nil && last.Sequence > probe.sequence {
		k.recordForeignVersion(last.Entry)
	}
	before := k.suspect
	k.suspect = publishedMessage{}
	missing = missing && k.isExpectedOnStream(probe)
	if missing && before != probe {
		k.suspect, missing = probe, false
	}
	k.mu.Unlock()
	if !missing {
		return nil
	}
	if err := k.cfg.Publisher.DeleteMarker(ctx, k.cfg.Cluster, k.kind.GroupResource); err != nil {
		return err
	}
	k.restartRelist()
	return nil
}
