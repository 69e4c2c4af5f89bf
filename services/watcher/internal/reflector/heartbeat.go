package reflector

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
)

// opening is how long a watch must have been open before it counts: one that is refused ends at once.
const opening = 2 * time.Second

// beat tells again and again how far the stream follows the API server, until ctx ends. That the API
// server can be reached at all is what the Lease shows: who cannot renew it does not lead.
func (r *reflector) beat(ctx context.Context) {
	for backoff.Sleep(ctx, r.cfg.CheckInterval) {
		h, ok := r.heartbeat(time.Now())
		if !ok {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, publishTimeout)
		err := r.cfg.Publisher.Heartbeat(attempt, h)
		cancel()
		if err != nil && ctx.Err() == nil {
			r.warnings.Do(func() { r.cfg.Log.WarnContext(ctx, "heartbeat not published", "error", err) })
		}
	}
}

// heartbeat is that of a time; there is none before every kind has a snapshot, nor while the bus has yet to be told of a kind of
// targets that it is not observed any more.
func (r *reflector) heartbeat(now time.Time) (h *eventv1.Heartbeat, ok bool) {
	oldest, versions := now, map[string]string{}
	for _, k := range r.kinds {
		if k.kind.Named { // Nobody decides from what is there of these.
			continue
		}
		version, current := k.current(now)
		if current.IsZero() {
			return nil, false
		}
		if current.Before(oldest) {
			oldest = current
		}
		versions[k.label()] = version
	}
	if !r.targets.settled(now) {
		return nil, false
	}
	return &eventv1.Heartbeat{
		Cluster: r.cfg.Cluster, Epoch: r.epoch.current(), ResourceVersions: versions,
		Behind: durationpb.New(now.Sub(oldest)), WrittenAt: timestamppb.New(now),
	}, true
}

// current is the newest version that the API server told of, and up to when the stream holds all that
// it had: no time before the first snapshot.
func (k *kindReflector) current(now time.Time) (version string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == "" {
		return "", time.Time{}
	}
	at = now
	if k.opened.IsZero() || now.Sub(k.opened) < opening {
		at = k.closed
	}
	return k.seen, k.unpublished(at)
}

// unpublished is a time, or that of the oldest change before it that is not published yet.
func (k *kindReflector) unpublished(at time.Time) time.Time {
	for _, s := range k.waiting {
		if s.ObservedAt.Before(at) {
			at = s.ObservedAt
		}
	}
	return at
}

// open notes that from now on the API server tells of every change. The function notes that it does
// so no longer.
func (k *kindReflector) open() (end func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opened = time.Now()
	if k.closed.IsZero() {
		k.closed = k.opened
	}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if now := time.Now(); now.Sub(k.opened) >= opening {
			k.closed = now
		}
		k.opened = time.Time{}
	}
}
