package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// verifyInterval bounds the time between two checks that the informer has read the whole stream. catchUpTimeout
	// bounds one check.
	verifyInterval = 2 * time.Second
	catchUpTimeout = 3 * time.Second
	// maxUnverified bounds the time since the last successful check. After this time the informer counts as
	// incomplete.
	maxUnverified = 6 * time.Second
	// maxBarrierAge bounds the age of an informer for callers that must not decide from an old state. The watcher writes a
	// barrier every second.
	maxBarrierAge = 2 * time.Second
	// maxRefusal bounds the time since a message was refused. After this time the informer loads the stream again.
	maxRefusal = 10 * time.Second
	// maxStuck bounds the number of failed checks in a row without a new message. After maxStuck such checks the
	// informer loads the stream again.
	maxStuck = 2
)

var (
	// errBehind means that the stream holds messages that were not delivered to the informer.
	errBehind = errors.New("the informer has not read the whole stream")
	// errCutShort means that the informer has read messages that the stream no longer holds. The NATS server was
	// restored from a backup or lost unsynced writes. New messages will reuse these sequences.
	errCutShort = errors.New("the stream of changes has lost its end")
)

// publishEndMark writes a message to the end of the stream and returns its sequence. An informer that has read this
// message has read everything before it. The position of a consumer is no such proof, because its server may lag
// behind.
func (v *Informer) publishEndMark(ctx context.Context) (sequence uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	mark, err := v.cfg.JS.Publish(ctx, topology.EndMarkSubject(v.cfg.Service), nil)
	if err != nil {
		return 0, fault.Unavailable(fmt.Errorf("marking the end of stream %s: %w", topology.Changes, err))
	}
	return mark.Sequence, nil
}

// AwaitCaughtUp waits until the informer has read everything that the stream holds now. The error is
// [fault.Unavailable] if that takes longer than catchUpTimeout.
func (v *Informer) AwaitCaughtUp(ctx context.Context) error {
	now, before := bootclock.Now(), v.currentPosition()
	sequence, err := v.publishEndMark(ctx)
	if err != nil {
		return err
	}
	stream, err := v.readStreamInfo(ctx)
	if err != nil {
		return fault.Unavailable(err)
	}
	if before.isBeyondEnd(stream, sequence-1) { // The mark is new, so it follows every message that was read.
		return fault.Unavailable(errCutShort)
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	for !v.recordSynced(topology.StreamID(stream), sequence, now) {
		if !backoff.Sleep(ctx, verifyInterval/1000) {
			return fault.Unavailable(fmt.Errorf("%w %s up to %d: %w", errBehind, topology.Changes, sequence, ctx.Err()))
		}
	}
	return nil
}

// CheckCurrent returns nil if the informer is complete, has read the whole stream, and has a new barrier of the
// watcher. Callers that must not decide from an old state use it.
func (v *Informer) CheckCurrent(ctx context.Context) error {
	if err := v.IncompleteErr(); err != nil {
		return err
	}
	if err := v.AwaitCaughtUp(ctx); err != nil {
		return err
	}
	if v.Staleness() > maxBarrierAge {
		return fault.Unavailable(fmt.Errorf("no barrier of the watcher was received for %s", maxBarrierAge))
	}
	return nil
}

// streamPosition is a sequence in one life of the stream.
type streamPosition struct {
	streamID string
	position uint64
}

// currentPosition returns the position up to which the informer has read the stream.
func (v *Informer) currentPosition() streamPosition {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return streamPosition{v.streamID, v.position}
}

// isBeyondEnd reports whether p is after the last message of the same stream. Then the stream has lost messages that
// were read.
func (p streamPosition) isBeyondEnd(stream *jetstream.StreamInfo, last uint64) bool {
	return p.streamID == topology.StreamID(stream) && p.position > last
}

// recordSynced records that the informer held the whole stream at the time then; sequence was the last sequence at
// that time. It returns false and records nothing if the informer has not read up to sequence, or reads another
// stream.
func (v *Informer) recordSynced(streamID string, sequence uint64, then time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.loading || v.streamID != streamID || v.position < sequence {
		return false
	}
	v.syncedAt = max(v.syncedAt, then)
	return true
}

// checkCaughtUpLoop checks after each barrier, and at least every verifyInterval, that the informer has read the whole
// stream. It returns an error, which ends the feed, in these cases:
//   - the stream has lost messages that were read
//   - no message is delivered although the stream holds more
//   - a refused message was not replaced in time
//
// A check costs one request while barriers arrive. Otherwise it also writes an end mark.
func (v *Informer) checkCaughtUpLoop(ctx context.Context) error {
	for stuck := 0; v.waitForBarrier(ctx); {
		if v.hasOldRefusal() {
			return errReplaced
		}
		brought, before := v.brought.Load(), v.currentPosition()
		stream, err := v.readStreamInfo(ctx)
		if err == nil && (before.isBeyondEnd(stream, stream.State.LastSeq) || !v.isRecentlySynced()) {
			err = v.AwaitCaughtUp(ctx)
		}
		// errCutShort is certain: AwaitCaughtUp published a message before it compared. A server that lost contact with
		// its cluster cannot cause this error, because it accepts no message.
		if errors.Is(err, errCutShort) {
			return err
		}
		if err != nil {
			v.cfg.Log.DebugContext(ctx, "the informer may be out of date", slog.Any("error", err))
		}
		if stuck++; !errors.Is(err, errBehind) || v.brought.Load() != brought {
			stuck = 0
		}
		if stuck == maxStuck {
			return err
		}
	}
	return nil
}

// isRecentlySynced reports whether the informer was known to hold the whole stream within the last verifyInterval.
func (v *Informer) isRecentlySynced() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return bootclock.Since(v.syncedAt) <= verifyInterval
}

// waitForBarrier waits for the next barrier, but at most verifyInterval. It returns false once ctx has ended.
func (v *Informer) waitForBarrier(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-v.barrierRead:
	case <-time.After(verifyInterval):
	}
	return ctx.Err() == nil
}
