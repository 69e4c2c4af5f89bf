package reflector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
)

const (
	// minRefused and maxRefused bound the wait before another attempt to follow a kind.
	minRefused = 500 * time.Millisecond
	maxRefused = 10 * time.Second
)

var (
	errTooMany  = fmt.Errorf("the watcher follows at most %d kinds, and that many were registered before this one", maxTargets)
	errMisnamed = errors.New("the API server calls the kind")
	// errJudged ends the work in progress, to check again whether the kind may be followed.
	errJudged = errors.New("the registered kinds have changed")
)

// targetKind is a kind that is followed because its objects are targets. If it cannot be followed, other kinds are not
// affected: its marker states the problem, and its objects count as not observed.
type targetKind struct {
	targets *targetKinds
	kind    event.GroupResource
	// following ends when the kind is not registered any more.
	following context.Context //nolint:containedctx // It is how long this lasts.
	end       context.CancelFunc

	mu sync.Mutex
	k  *kindReflector
	// sure is the time up to which the stream held all changes, before k could report it.
	sure time.Time
	// failure is the error of the last attempt to follow the kind. It is nil while the kind is followed.
	failure error
	// told is the stream and epoch of the last marker. problem is why the kind is not observed; empty if it is.
	told    markerScope
	problem string
}

// markerScope holds the stream ID and the epoch to which a marker applies.
type markerScope struct{ streamID, epoch string }

// followUntilUnregistered follows the kind as long as it is registered, and then withdraws it.
func (t *targetKind) followUntilUnregistered(ctx context.Context) {
	t.resumeFromMarker(ctx)
	for attempt := 1; t.following.Err() == nil; attempt++ {
		began := time.Now()
		err := t.followServedVersion()
		if time.Since(began) > 2*maxRefused || err == nil || errors.Is(err, errDue) || errors.Is(err, errEpoch) ||
			errors.Is(err, errAgain) || errors.Is(err, errJudged) {
			attempt = 0
			continue
		}
		if t.storeFailure(err) && t.following.Err() == nil {
			t.targets.reflector.cfg.Log.Log(ctx, followErrorLevel(err), "a kind of targets is not followed; trying again", "kind",
				t.kind.String(), "error", err)
		}
		backoff.Backoff{Min: minRefused, Max: maxRefused}.Wait(t.following, attempt)
	}
	t.replaceReflector(nil)
	for attempt := 1; ctx.Err() == nil; attempt++ {
		err := t.withdrawFromStream(ctx)
		if err == nil {
			return
		}
		t.targets.reflector.warnings.Do(func() {
			t.targets.reflector.cfg.Log.WarnContext(ctx, "a kind of targets is not removed from the stream; trying again", "kind",
				t.kind.String(), "error", err)
		})
		retryBackoff().Wait(ctx, attempt)
	}
}

// storeFailure records the failure, and reports whether it is new.
func (t *targetKind) storeFailure(why error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.failure
	t.failure = why
	return before == nil || describeFollowProblem(before) != describeFollowProblem(why)
}

// resumeFromMarker reads the last marker, and up to when it was right. As long as the marker applies, consumers need
// not wait.
func (t *targetKind) resumeFromMarker(ctx context.Context) {
	cfg := t.targets.reflector.cfg
	m, err := cfg.Publisher.LastMarker(ctx, cfg.Cluster, t.kind)
	if err != nil || m.GetWithdrawn() {
		return
	}
	if streamID, err := cfg.Publisher.StreamID(ctx); m.GetProblem() == "" && (err != nil || m.GetStream() == streamID) {
		var sure time.Time
		if last, _, err := cfg.Publisher.LastBarrier(ctx, cfg.Cluster); err == nil {
			sure = last.GetWrittenAt().AsTime().Add(-last.GetBehind().AsDuration())
		}
		t.mu.Lock()
		t.sure = sure
		t.mu.Unlock()
	}
	t.recordMarker(m)
}

// followServedVersion follows the kind in the version that the API server serves now, until that fails.
func (t *targetKind) followServedVersion() error {
	kind, err := t.targets.registered.FindServedKind(t.following, t.kind)
	if err != nil {
		return err
	}
	if err := t.targets.checkFollowable(t.kind, kind.Kind); err != nil {
		return err
	}
	k := t.currentReflector()
	if k == nil || k.kind != kind {
		k = newKindReflector(t.targets.reflector, kind, t.targets.lane)
		k.marked, k.right = t.recordMarker, t.isExpectedMarker
		t.replaceReflector(k)
	}
	t.mu.Lock()
	t.failure = nil
	t.mu.Unlock()
	return k.relistAndWatch(t.following)
}

// replaceReflector replaces the reflector of the kind by k, which may be nil. It drops the waiting states of the
// previous one.
func (t *targetKind) replaceReflector(k *kindReflector) {
	t.mu.Lock()
	before := t.k
	t.k = k
	t.mu.Unlock()
	if before == nil {
		return
	}
	_, sure := before.barrierProgress(time.Now())
	before.dropPendingStates()
	t.mu.Lock()
	defer t.mu.Unlock()
	if sure.After(t.sure) {
		t.sure = sure
	}
}

// recheckFollowable starts a new check if the kind may no longer be followed.
func (t *targetKind) recheckFollowable() {
	if k := t.currentReflector(); k != nil && t.targets.checkFollowable(t.kind, k.kind.Kind) != nil {
		k.mu.Lock()
		restart := k.restart
		k.mu.Unlock()
		restart(errJudged)
	}
}

func (t *targetKind) currentReflector() *kindReflector {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.k
}

// isComparedOrUnobserved reports whether a sweep of the kind is complete, or its marker states a problem.
func (t *targetKind) isComparedOrUnobserved() bool {
	k := t.currentReflector()
	return t.markerProblem() != "" || k != nil && k.hasValidMarker()
}

// withdrawFromStream removes the objects of the kind from the stream, although they may still exist.
func (t *targetKind) withdrawFromStream(ctx context.Context) error {
	r := t.targets.reflector
	streamID, err := r.ensureStreamID(ctx)
	if err != nil {
		return err
	}
	last, err := r.cfg.Publisher.PurgeTargetKind(ctx, r.cfg.Cluster, t.kind)
	if err != nil {
		return err
	}
	m := t.newMarker(streamID)
	m.Withdrawn, m.LastSequence = true, last
	return r.cfg.Publisher.PublishMarker(ctx, m)
}

// dropPendingStates drops the waiting states. The kind is served in another version now, or is not registered any more.
func (k *kindReflector) dropPendingStates() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.waiting {
		k.lane.backlog.Release(s.backlogWeight())
	}
	clear(k.waiting)
	k.sweep = nil
	k.cfg.Metrics.forgetKind(k.kindLabel())
}

// recordAPIServerAnswer records that the API server answered about the kind.
func (k *kindReflector) recordAPIServerAnswer() {
	k.mu.Lock()
	k.heard = time.Now()
	k.mu.Unlock()
	k.cfg.Health.recordKindAnswer(k.kindLabel())
}
