package reflector

import (
	"context"
	"errors"
	"net/http"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
)

const (
	// opening is how long a watch must have been open before it counts: one that is refused ends at once.
	opening = 2 * time.Second
	// maxSilence is how long a watch that has sent bookmarks may send nothing: the API server sends one about every minute.
	maxSilence = 90 * time.Second
	// maxUnread is how long the API server may leave reads unanswered before heartbeats stop.
	maxUnread = 2 * time.Second
)

// publishHeartbeats publishes again and again how far the stream follows the API server, until ctx ends; nothing while reads on the watches'
// transport are not answered. The Lease shows less: its requests may take another connection.
func (r *reflector) publishHeartbeats(ctx context.Context) {
	for backoff.Sleep(ctx, r.cfg.CheckInterval) {
		h, ok := r.heartbeatAt(time.Now())
		if !ok || r.cfg.Health.Unread() > maxUnread {
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

// probeAPIServer reads again and again from the API server, by the transport of the watches, until ctx ends.
func (r *reflector) probeAPIServer(ctx context.Context) {
	for backoff.Sleep(ctx, r.cfg.CheckInterval/2) {
		began := time.Now()
		attempt, cancel := context.WithTimeout(ctx, maxUnread)
		_, err := r.cfg.Source.Epoch(attempt)
		cancel()
		if isAnswer(err) {
			r.cfg.Health.wasRead(began)
		}
	}
}

// isAnswer reports whether the API server answered a read, be it with a refusal.
func isAnswer(err error) bool {
	status := apierrors.APIStatus(nil)
	return err == nil || errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError
}

// heartbeatAt returns the heartbeat for a time. It returns false before every kind has a snapshot. It also returns false
// while a kind of targets is late and its marker does not report that yet.
func (r *reflector) heartbeatAt(now time.Time) (h *eventv1.Heartbeat, ok bool) {
	oldest, versions := now, map[string]string{}
	for _, k := range r.kinds {
		if k.kind.Named { // No decision depends on the presence of these.
			continue
		}
		version, current := k.currentVersion(now)
		if current.IsZero() {
			return nil, false
		}
		if current.Before(oldest) {
			oldest = current
		}
		versions[k.kindLabel()] = version
	}
	if !r.targets.isSettled(now) {
		return nil, false
	}
	return &eventv1.Heartbeat{
		Cluster: r.cfg.Cluster, Epoch: r.epoch.currentEpoch(), ResourceVersions: versions,
		Behind: durationpb.New(now.Sub(oldest)), WrittenAt: timestamppb.New(now),
	}, true
}

// currentVersion returns the API server's newest version, and the time up to which the stream holds all its changes. The time
// is zero before the first snapshot.
func (k *kindReflector) currentVersion(now time.Time) (version string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == "" {
		return "", time.Time{}
	}
	at = k.lastSure(now)
	if k.opened.IsZero() || now.Sub(k.opened) < opening {
		at = k.closed
	}
	return k.seen, k.unpublishedSince(at)
}

// lastSure returns up to when an open watch is known to have sent everything: the last message of a watch that is silent. The
// caller holds the lock.
func (k *kindReflector) lastSure(now time.Time) time.Time {
	if k.isSilent(now) {
		return k.heard
	}
	return now
}

// isSilent reports whether a watch has sent nothing for longer than bookmarks allow; the caller holds the lock.
func (k *kindReflector) isSilent(now time.Time) bool {
	return k.bookmarked && !k.opened.IsZero() && now.Sub(k.heard) > maxSilence
}

// unpublishedSince returns at, or the time of the oldest unpublished change if that is earlier.
func (k *kindReflector) unpublishedSince(at time.Time) time.Time {
	for _, s := range k.waiting {
		if s.ObservedAt.Before(at) {
			at = s.ObservedAt
		}
	}
	return at
}

// openWatch records that a watch is open, which yields every change from now on. The returned function records its end.
func (k *kindReflector) openWatch() (end func()) {
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
			k.closed = k.lastSure(now)
		}
		k.opened = time.Time{}
	}
}
