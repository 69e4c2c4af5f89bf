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

// marked records a marker of the kind.
func (t *target) marked(m *eventv1.SnapshotMarker) {
	t.tell(asOf{m.GetStream(), m.GetEpoch()}, m.GetProblem())
}

// tell records what NATS holds about the kind from now on.
func (t *target) tell(as asOf, problem string) {
	t.mu.Lock()
	t.told, t.problem = as, problem
	t.mu.Unlock()
	t.targets.reflector.mark(kinds.ProtectedResources())
}

// isRight reports whether a marker states the present problem. Another watcher, after the end of its term, may have
// written another marker.
func (t *target) isRight(m *eventv1.SnapshotMarker) bool {
	return !m.GetWithdrawn() && m.GetProblem() == t.refused()
}

func (t *target) isTold(as asOf) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.told == as
}

func (t *target) refused() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problem
}

// late returns how long the stream may have missed changes of the kind. compared reports whether a sweep is complete.
func (t *target) late(now time.Time) (late time.Duration, compared bool) {
	t.mu.Lock()
	k, sure := t.k, t.sure
	t.mu.Unlock()
	if k != nil {
		at, done := k.told(now)
		if compared = done; at.After(sure) {
			sure = at
		}
	}
	return now.Sub(sure), compared
}

// patience returns how long the kind may be late.
func (t *target) patience() time.Duration { return patience * t.targets.reflector.cfg.CheckInterval }

// isLate reports whether a kind is late for too long while its marker states that it is observed.
func (t *target) isLate(now time.Time) bool {
	t.mu.Lock()
	observed := t.told != asOf{} && t.problem == ""
	t.mu.Unlock()
	if t.following.Err() != nil || !observed {
		return false
	}
	late, _ := t.late(now)
	return late >= t.patience()
}

// check writes a marker with the problem while the kind cannot be followed. Once it can, check starts a new sweep.
func (t *target) check(ctx context.Context, incarnation string) error {
	if t.following.Err() != nil {
		return nil // It is being withdrawn.
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	t.mu.Lock()
	k, failure, isTold, problem := t.k, t.failure, t.told == asOf{incarnation, t.targets.reflector.epoch.current()}, t.problem
	t.mu.Unlock()
	late, compared := t.late(time.Now())
	switch isLate := late >= t.patience(); {
	case failure != nil && (!isTold || problem != "" || isLate || errors.Is(failure, errMisnamed) || errors.Is(failure, errTooMany)):
		return t.refuse(ctx, incarnation, describe(failure))
	case failure != nil || k == nil:
	case isLate && compared:
		return t.refuse(ctx, incarnation, fmt.Sprintf("the API server has told nothing of it for %s: the log of the watcher says why", t.patience()))
	case isLate && (!isTold || problem == ""):
		return t.refuse(ctx, incarnation, "all of its objects are being read")
	case problem != "" && compared:
		k.sweepAgain() // The state on the stream may be old.
	}
	return nil
}

// describe returns the problem and the remedy. The text stays the same for the same problem, even if attempts fail with
// different errors.
func describe(err error) string {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsForbidden(err):
		return "the watcher may not read it: apply the ClusterRole that `entail iam observe` prints"
	case errors.Is(err, source.ErrNotServed):
		return "the API server does not serve it: is its CustomResourceDefinition there, and serviceRef.name and plural right?"
	case errors.Is(err, errTooMany), errors.Is(err, errMisnamed), errors.Is(err, source.ErrCannotBeFollowed):
		return fmt.Sprintf("%.500s", err)
	case errors.Is(err, errRewound):
		return "its resource versions went back: if this does not end, delete its ProtectedResource, and make it anew"
	case errors.As(err, &status) && status.Status().Reason != "":
		return fmt.Sprintf("the API server does not let it be read (%s): the log of the watcher says more", status.Status().Reason)
	}
	return "it could not be read: the log of the watcher says why"
}

// level returns the level for the log. A kind may be registered before the API server serves it, and its
// ProtectedResource reports that.
func level(err error) slog.Level {
	if errors.Is(err, source.ErrNotServed) && !apierrors.IsForbidden(err) {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// refuse writes a marker with the problem, unless the last marker already has it.
func (t *target) refuse(ctx context.Context, incarnation, problem string) error {
	r := t.targets.reflector
	m := t.marker(incarnation)
	written, err := r.cfg.Publisher.LastMarker(ctx, r.cfg.Cluster, t.kind)
	switch {
	case err == nil && written.GetStream() == m.GetStream() && written.GetEpoch() == m.GetEpoch() && written.GetProblem() == problem:
		if !t.isTold(asOf{m.GetStream(), m.GetEpoch()}) {
			t.marked(written)
		}
		return nil
	case err != nil && !nothing(err):
		return err
	}
	m.Problem = problem
	if k := t.reflector(); k != nil {
		m.Kind, m.Version, m.Namespaced = k.kind.Kind, k.kind.Version, !k.kind.Global
	}
	if err := r.cfg.Publisher.Marker(ctx, m); err != nil {
		return err
	}
	t.marked(m)
	return nil
}

func (t *target) marker(incarnation string) *eventv1.SnapshotMarker {
	r := t.targets.reflector
	return &eventv1.SnapshotMarker{
		Cluster: r.cfg.Cluster, Group: t.kind.Group, Resource: t.kind.Resource, Target: true,
		Epoch: r.epoch.current(), Stream: incarnation, WrittenAt: timestamppb.Now(),
	}
}

// told returns the time up to which the stream holds all changes of the kind. The time is zero before the first sweep.
// While a watch is open, that time is now, less what is unpublished. compared reports that no sweep is in progress.
func (k *kindReflector) told(now time.Time) (at time.Time, compared bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == "" {
		return time.Time{}, false
	}
	if at = k.closed; !k.opened.IsZero() && k.sweep == nil {
		at = now
	}
	return k.unpublished(at), k.sweep == nil
}
