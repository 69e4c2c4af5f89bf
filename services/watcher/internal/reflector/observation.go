package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// patience bounds the checks of the stream during which a kind on it may be late. After them the kind counts as not
// observed.
const patience = 10

// recordMarker records a marker of the kind.
func (t *targetKind) recordMarker(m *eventv1.SnapshotMarker) {
	t.recordMarkerState(markerScope{m.GetStream(), m.GetEpoch()}, m.GetProblem())
}

// recordMarkerState records what NATS holds about the kind from now on.
func (t *targetKind) recordMarkerState(as markerScope, problem string) {
	t.mu.Lock()
	t.told, t.problem = as, problem
	t.mu.Unlock()
	t.targets.reflector.enqueueMarker(kinds.ProtectedResources())
}

// isExpectedMarker reports whether a marker states the present problem. Another watcher, after the end of its term, may
// have written another marker.
func (t *targetKind) isExpectedMarker(m *eventv1.SnapshotMarker) bool {
	return !m.GetWithdrawn() && m.GetProblem() == t.markerProblem()
}

func (t *targetKind) hasMarkerFor(as markerScope) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.told == as
}

func (t *targetKind) markerProblem() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problem
}

// observationLag returns how long the stream may have missed changes of the kind. compared reports whether a sweep is
// complete.
func (t *targetKind) observationLag(now time.Time) (lag time.Duration, compared bool) {
	t.mu.Lock()
	k, sure := t.k, t.sure
	t.mu.Unlock()
	if k != nil {
		at, done := k.streamCompleteUntil(now)
		if compared = done; at.After(sure) {
			sure = at
		}
	}
	return now.Sub(sure), compared
}

// maxLag returns how long the kind may be late.
func (t *targetKind) maxLag() time.Duration { return patience * t.targets.reflector.cfg.CheckInterval }

// isLateUnreported reports whether a kind is late for too long while its marker states that it is observed.
func (t *targetKind) isLateUnreported(now time.Time) bool {
	t.mu.Lock()
	observed := t.told != markerScope{} && t.problem == ""
	t.mu.Unlock()
	if t.following.Err() != nil || !observed {
		return false
	}
	late, _ := t.observationLag(now)
	return late >= t.maxLag()
}

// updateProblemMarker writes a marker with the problem while the kind cannot be followed. Once it can, check starts a
// new sweep.
func (t *targetKind) updateProblemMarker(ctx context.Context, streamID string) error {
	if t.following.Err() != nil {
		return nil // It is being withdrawn.
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	t.mu.Lock()
	k, failure, isTold, problem := t.k, t.failure, t.told == markerScope{streamID, t.targets.reflector.epoch.currentEpoch()}, t.problem
	t.mu.Unlock()
	late, compared := t.observationLag(time.Now())
	switch isLate := late >= t.maxLag(); {
	case failure != nil && (!isTold || problem != "" || isLate || errors.Is(failure, errMisnamed) || errors.Is(failure, errTooMany)):
		return t.writeProblemMarker(ctx, streamID, describeFollowProblem(failure))
	case failure != nil || k == nil:
	case isLate && compared:
		return t.writeProblemMarker(ctx, streamID,
			fmt.Sprintf("the API server has reported nothing about it for %s; see the log of the watcher", t.maxLag()))
	case isLate && (!isTold || problem == ""):
		return t.writeProblemMarker(ctx, streamID, "all of its objects are being read")
	case problem != "" && compared:
		k.restartRelist() // The state on the stream may be old.
	}
	return nil
}

// describeFollowProblem returns the problem and the remedy. The text stays the same for the same problem, even if
// attempts fail with different errors.
func describeFollowProblem(err error) string {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsForbidden(err):
		return "the watcher may not read it: apply the ClusterRole that `entail iam observe` prints"
	case errors.Is(err, source.ErrNotServed):
		return "the API server does not serve it: is its CustomResourceDefinition there, and serviceRef.name and plural right?"
	case errors.Is(err, errTooMany), errors.Is(err, errMisnamed), errors.Is(err, source.ErrCannotBeFollowed):
		return fmt.Sprintf("%.500s", err)
	case errors.Is(err, errRewound):
		return "its resource versions went back; if this lasts, delete its ProtectedResource and create it again"
	case errors.As(err, &status) && status.Status().Reason != "":
		return fmt.Sprintf("the API server refuses reads of it (%s); see the log of the watcher", status.Status().Reason)
	}
	return "it could not be read; see the log of the watcher"
}

// followErrorLevel returns the level for the log. A kind may be registered before the API server serves it, and its
// ProtectedResource reports that.
func followErrorLevel(err error) slog.Level {
	if errors.Is(err, source.ErrNotServed) && !apierrors.IsForbidden(err) {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// writeProblemMarker writes a marker with the problem, unless the last marker already has it.
func (t *targetKind) writeProblemMarker(ctx context.Context, streamID, problem string) error {
	r := t.targets.reflector
	m := t.newMarker(streamID)
	written, err := r.cfg.Publisher.LastMarker(ctx, r.cfg.Cluster, t.kind)
	switch {
	case err == nil && written.GetStream() == m.GetStream() && written.GetEpoch() == m.GetEpoch() && written.GetProblem() == problem:
		if !t.hasMarkerFor(markerScope{m.GetStream(), m.GetEpoch()}) {
			t.recordMarker(written)
		}
		return nil
	case err != nil && !isMissingOrMalformed(err):
		return err
	}
	m.Problem = problem
	if k := t.currentReflector(); k != nil {
		m.Kind, m.Version, m.Namespaced = k.kind.Kind, k.kind.Version, !k.kind.ClusterScoped
	}
	if err := r.cfg.Publisher.PublishMarker(ctx, m); err != nil {
		return err
	}
	t.recordMarker(m)
	return nil
}

func (t *targetKind) newMarker(streamID string) *eventv1.SnapshotMarker {
	r := t.targets.reflector
	return &eventv1.SnapshotMarker{
		Cluster: r.cfg.Cluster, Group: t.kind.Group, Resource: t.kind.Resource, Target: true,
		Epoch: r.epoch.currentEpoch(), Stream: streamID, WrittenAt: timestamppb.Now(),
	}
}

// streamCompleteUntil returns the time up to which the stream holds all changes of the kind. The time is zero before
// the first sweep. While a watch is open, that time is now, less what is unpublished. compared reports that no sweep is
// in progress.
func (k *kindReflector) streamCompleteUntil(now time.Time) (at time.Time, compared bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == "" {
		return time.Time{}, false
	}
	if at = k.closed; !k.opened.IsZero() && k.sweep == nil {
		at = now
	}
	return k.limitToOldestUnpublished(at), k.sweep == nil
}
