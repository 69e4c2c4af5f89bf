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

// patience is for how many looks at the stream it may tell what is old of a kind before that counts as not observed.
const patience = 10

// marked notes a marker of the kind.
func (t *target) marked(m *eventv1.SnapshotMarker) {
	t.tell(asOf{m.GetStream(), m.GetEpoch()}, m.GetProblem())
}

// tell notes what the bus tells of the kind from now on.
func (t *target) tell(as asOf, problem string) {
	t.mu.Lock()
	t.told, t.problem = as, problem
	t.mu.Unlock()
	t.targets.reflector.mark(kinds.ProtectedResources())
}

// isRight says whether a marker tells what is the case: another watcher, whose time is over, may have told something else.
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

// late is for how long the bus may lack something of the kind, compared whether all that it had was compared.
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

// patience is for how long the bus may tell what is old.
func (t *target) patience() time.Duration { return patience * t.targets.reflector.cfg.CheckInterval }

// isLate says that the bus tells for too long that a kind is observed.
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

// check has the bus tell that the kind cannot be followed, as long as it cannot, and has it compared again once it can.
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
		k.sweepAgain() // What is on the bus may be old.
	}
	return nil
}

// describe says what is wrong, and what to do: the same words as long as that is the same, whatever the attempts ran into.
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

// level is how loudly that is told: a kind may well be registered before anybody serves it, and its ProtectedResource says so.
func level(err error) slog.Level {
	if errors.Is(err, source.ErrNotServed) && !apierrors.IsForbidden(err) {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// refuse has the bus tell that the kind is not observed, and why, unless it does.
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

// told is up to when the bus tells all that the API server had; no time before that was compared. While a watch is open, the API
// server may tell of a change at any time. Compared says that all of it was, and nothing is under way.
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
