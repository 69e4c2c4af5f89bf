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
	// verifyInterval bounds the time between two checks that the view holds everything that the stream holds.
	// catchUpTimeout bounds one check.
	verifyInterval = 2 * time.Second
	catchUpTimeout = 3 * time.Second
	// maxUnverified bounds the time since the last successful check. After it the view counts as incomplete.
	maxUnverified = 6 * time.Second
	// current bounds the age of a view for callers that must not decide from an old state. The watcher writes a
	// barrier every second.
	current = 2 * time.Second
	// maxRefusal bounds the time since a message was refused. After it the view loads again.
	maxRefusal = 10 * time.Second
	// maxStuck bounds failed checks in a row while the feed brings nothing. Then the feed ends and begins again.
	maxStuck = 2
)

var (
	// errBehind means that the stream holds messages that the feed has not delivered.
	errBehind = errors.New("the view has not read all of the stream")
	// errCutShort means that the feed has read messages that the stream no longer holds: the server was restored from a
	// backup, or lost unsynced writes. New messages reuse sequences that the feed has passed.
	errCutShort = errors.New("the stream of changes has lost its end")
)

// publishEndMark writes a message to the end of the stream and returns its sequence. A consumer may read from a server that lags
// behind, so its position proves nothing. A view that has read the mark has read everything before it.
func (v *Informer) publishEndMark(ctx context.Context) (sequence uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	mark, err := v.cfg.JS.Publish(ctx, topology.EndMarkSubject(v.cfg.Service), nil)
	if err != nil {
		return 0, fault.Unavailable(fmt.Errorf("marking the end of stream %s: %w", topology.Changes, err))
	}
	return mark.Sequence, nil
}

// CatchUp waits until the view holds everything that the stream holds now. The error is [fault.Unavailable] if that
// takes longer than catchUpTimeout.
func (v *Informer) CatchUp(ctx context.Context) error {
	now, before := bootclock.Now(), v.currentPosition()
	sequence, err := v.publishEndMark(ctx)
	if err != nil {
		return err
	}
	stream, err := v.readStreamInfo(ctx)
	if err != nil {
		return fault.Unavailable(err)
	}
	if before.isBeyondEnd(stream, sequence) {
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

// EnsureCurrent returns nil if the view is complete, holds everything that the stream's leader has now, and the watcher's
// last barrier is new. Callers that must not decide from an old state use it.
func (v *Informer) EnsureCurrent(ctx context.Context) error {
	if err := v.IncompleteErr(); err != nil {
		return err
	}
	if err := v.CatchUp(ctx); err != nil {
		return err
	}
	if v.Staleness() > current {
		return fault.Unavailable(fmt.Errorf("no barrier of the watcher was received for %s", current))
	}
	return nil
}

// streamPosition is a position in one life of the stream.
type streamPosition struct {
	incarnation string
	position    uint64
}

// currentPosition returns the position up to which the view holds everything.
func (v *Informer) currentPosition() streamPosition {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return streamPosition{v.streamID, v.position}
}

// isBeyondEnd reports whether the stream, in the same life, ends before p.
func (p streamPosition) isBeyondEnd(stream *jetstream.StreamInfo, last uint64) bool {
	return p.incarnation == topology.StreamID(stream) && p.position > last
}

// recordSynced records then, the time at which the stream ended at a sequence. It does so, and returns true, only if the
// view holds everything up to there, in the same life of the stream.
func (v *Informer) recordSynced(incarnation string, sequence uint64, then time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.loading || v.streamID != incarnation || v.position < sequence {
		return false
	}
	v.syncedAt = max(v.syncedAt, then)
	return true
}

// catchUpLoop checks repeatedly that the view misses nothing: after each barrier, and at least every verifyInterval. While the
// feed brings barriers, a check costs one request. Otherwise it marks the end of the stream. verify returns an error,
// which ends the feed, if the stream lost its end, or if the feed delivers nothing although the stream holds more.
func (v *Informer) catchUpLoop(ctx context.Context) error {
	for stuck := 0; v.waitForBarrier(ctx); {
		if v.hasOldRefusal() {
			return errReplaced
		}
		brought, before := v.brought.Load(), v.currentPosition()
		stream, err := v.readStreamInfo(ctx)
		if err == nil && (before.isBeyondEnd(stream, stream.State.LastSeq) || !v.isRecentlySynced()) {
			err = v.CatchUp(ctx)
		}
		if errors.Is(err, errCutShort) { // A server that lost contact with the others accepts no mark, so CatchUp cannot find this out.
			return err
		}
		if err != nil {
			v.cfg.Log.DebugContext(ctx, "the view may be old", slog.Any("error", err))
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

// isRecentlySynced reports whether a barrier, or a mark of the end, that was written within verifyInterval was read.
func (v *Informer) isRecentlySynced() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return bootclock.Since(v.syncedAt) <= verifyInterval
}

// waitForBarrier waits for a barrier, verifyInterval at most. It returns false once ctx has ended.
func (v *Informer) waitForBarrier(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-v.beaten:
	case <-time.After(verifyInterval):
	}
	return ctx.Err() == nil
}
