package view

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// verifyInterval is how often the view makes sure that it holds what the stream does while nobody tells how far that follows the
	// API server, catchUpTimeout how long it waits for what is missing.
	verifyInterval = 2 * time.Second
	catchUpTimeout = 3 * time.Second
	// maxUnverified is after how long without that a view counts as incomplete.
	maxUnverified = 6 * time.Second
	// current is how old what a view holds may be for who must not decide by what was: the watcher tells
	// every second how far the stream follows the API server.
	current = 2 * time.Second
	// maxStuck is how often what is missing is waited for in vain while nothing at all comes.
	maxStuck = 2
)

var (
	// errBehind means that the stream holds what the feed has not brought.
	errBehind = errors.New("the view has not read all of the stream")
	// errCutShort ends a feed that has read what the stream no longer holds: its server was restored from a backup, or lost what it
	// had not written down. What comes next has numbers that the feed has passed.
	errCutShort = errors.New("the stream of changes has lost its end")
)

// barrier makes a mark in the stream, behind all that it holds by now. What a consumer has read
// tells nothing of what there is: it may read from a server that lags behind. But a mark that it has
// read comes after all else.
func (v *View) barrier(ctx context.Context) (sequence uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	mark, err := v.cfg.JS.Publish(ctx, topology.BarrierSubject(v.cfg.Service), nil)
	if err != nil {
		return 0, fault.Unavailable(fmt.Errorf("marking the end of stream %s: %w", topology.Changes, err))
	}
	return mark.Sequence, nil
}

// CatchUp waits until the view holds all that the stream holds now. Its error is
// [fault.Unavailable] when that takes too long.
func (v *View) CatchUp(ctx context.Context) error {
	now, before := v.now(), v.place()
	sequence, err := v.barrier(ctx)
	if err != nil {
		return err
	}
	stream, err := v.stream(ctx)
	if err != nil {
		return fault.Unavailable(err)
	}
	if before.isBeyond(stream, sequence) {
		return fault.Unavailable(errCutShort)
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	for !v.reached(topology.Incarnation(stream), sequence, now) {
		if !backoff.Sleep(ctx, verifyInterval/1000) {
			return fault.Unavailable(fmt.Errorf("%w %s up to %d: %w", errBehind, topology.Changes, sequence, ctx.Err()))
		}
	}
	return nil
}

// Current is nil when the view is complete, holds all that the stream's leader has by now, and the
// watcher has just told that the stream follows the API server. It is for who must not decide by what was.
func (v *View) Current(ctx context.Context) error {
	if err := v.Complete(); err != nil {
		return err
	}
	if err := v.CatchUp(ctx); err != nil {
		return err
	}
	if v.Age() > current {
		return fault.Unavailable(fmt.Errorf("the watcher has not said for %s that the stream follows the API server", current))
	}
	return nil
}

// place is one in a life of the stream.
type place struct {
	incarnation string
	position    uint64
}

// place is up to where the view holds everything.
func (v *View) place() place {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return place{v.incarnation, v.position}
}

// isBeyond says whether a stream ends before a place that was in it.
func (p place) isBeyond(stream *jetstream.StreamInfo, last uint64) bool {
	return p.incarnation == topology.Incarnation(stream) && p.position > last
}

// reached notes that the view holds all up to a sequence of a life of the stream, which is all that there was at a moment.
func (v *View) reached(incarnation string, sequence uint64, then moment) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.loading || v.incarnation != incarnation || v.position < sequence {
		return false
	}
	if then.at > v.heard.at {
		v.heard = then
	}
	return true
}

// verify makes sure again and again that nothing is missing, and so whenever there is a heartbeat. While something comes, it costs a look at
// the stream: every replica makes marks there (see package service), which the feed brings, too. It ends
// a feed that brings nothing although there is something: another may come from another server; and one of a stream that has lost its end.
func (v *View) verify(ctx context.Context) error {
	for stuck := 0; v.wait(ctx); {
		v.readClock(ctx)
		now, brought, before := v.now(), v.brought.Load(), v.place()
		stream, err := v.stream(ctx)
		if err == nil && (before.isBeyond(stream, stream.State.LastSeq) || !v.reached(topology.Incarnation(stream), stream.State.LastSeq, now)) {
			err = v.CatchUp(ctx)
		}
		if errors.Is(err, errCutShort) { // A server that lost the others only tells what it knows: it takes no mark.
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

// wait waits for a heartbeat, but not for long. It is false once ctx has ended.
func (v *View) wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-v.beaten:
	case <-time.After(verifyInterval):
	}
	return ctx.Err() == nil
}
