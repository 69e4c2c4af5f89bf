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
	// minRefused and maxRefused bound the wait before a kind is looked for again that could not be followed.
	minRefused = 500 * time.Millisecond
	maxRefused = 10 * time.Second
)

var (
	errTooMany  = fmt.Errorf("%d kinds are followed already that were registered before, and no more than that are", maxTargets)
	errMisnamed = errors.New("the API server calls the kind")
	// errJudged ends what is under way, to find out whether it may go on.
	errJudged = errors.New("what is registered has changed")
)

// target is a kind that is followed because its objects are targets. That it cannot be followed harms nobody else: then the bus
// tells so, and its objects count as not observed.
type target struct {
	targets *targets
	kind    event.GroupResource
	// following ends when the kind is not registered any more.
	following context.Context //nolint:containedctx // It is how long this lasts.
	end       context.CancelFunc

	mu sync.Mutex
	k  *kindReflector
	// sure is up to when the bus told all of it, before k could say.
	sure time.Time
	// failure is why it could not be followed when that was tried last; nil while it is.
	failure error
	// told is as of when the bus tells whether it is observed, problem why not; empty if it is.
	told    asOf
	problem string
}

// asOf is the life of the stream in which something was told, and the epoch of the cluster.
type asOf struct{ incarnation, epoch string }

// run follows the kind as long as it is registered, and withdraws it then.
func (t *target) run(ctx context.Context) {
	t.resume(ctx)
	for attempt := 1; t.following.Err() == nil; attempt++ {
		began := time.Now()
		err := t.follow()
		if time.Since(began) > 2*maxRefused || err == nil || errors.Is(err, errDue) || errors.Is(err, errEpoch) ||
			errors.Is(err, errAgain) || errors.Is(err, errJudged) {
			attempt = 0
			continue
		}
		if t.fail(err) && t.following.Err() == nil {
			t.targets.reflector.cfg.Log.Log(ctx, level(err), "a kind of targets is not followed; trying again", "kind", t.kind.String(), "error", err)
		}
		backoff.Backoff{Min: minRefused, Max: maxRefused}.Wait(t.following, attempt)
	}
	t.reflectBy(nil)
	for attempt := 1; ctx.Err() == nil; attempt++ {
		if err := t.withdraw(ctx); err == nil {
			return
		}
		retries().Wait(ctx, attempt)
	}
}

// fail notes why it is not followed, and says whether that is news.
func (t *target) fail(why error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.failure
	t.failure = why
	return before == nil || describe(before) != describe(why)
}

// resume finds out what the bus tells already, and up to when that was so: as long as that stands, nobody waits for more.
func (t *target) resume(ctx context.Context) {
	cfg := t.targets.reflector.cfg
	m, err := cfg.Publisher.LastMarker(ctx, cfg.Cluster, t.kind)
	if err != nil || m.GetWithdrawn() {
		return
	}
	if incarnation, err := cfg.Publisher.Incarnation(ctx); m.GetProblem() == "" && (err != nil || m.GetStream() == incarnation) {
		var sure time.Time
		if beat, err := cfg.Publisher.LastHeartbeat(ctx, cfg.Cluster); err == nil {
			sure = beat.GetWrittenAt().AsTime().Add(-beat.GetBehind().AsDuration())
		}
		t.mu.Lock()
		t.sure = sure
		t.mu.Unlock()
	}
	t.marked(m)
}

// follow follows the kind as the API server serves it now, until that fails.
func (t *target) follow() error {
	kind, err := t.targets.registered.Find(t.following, t.kind)
	if err != nil {
		return err
	}
	if err := t.targets.admits(t.kind, kind.Kind); err != nil {
		return err
	}
	k := t.reflector()
	if k == nil || k.kind != kind {
		k = newKindReflector(t.targets.reflector, kind, t.targets.lane)
		k.marked, k.right = t.marked, t.isRight
		t.reflectBy(k)
	}
	t.mu.Lock()
	t.failure = nil
	t.mu.Unlock()
	return k.follow(t.following)
}

// reflectBy has another reflector, or none, go on with the kind. What waits in the one before is of no use to anybody.
func (t *target) reflectBy(k *kindReflector) {
	t.mu.Lock()
	before := t.k
	t.k = k
	t.mu.Unlock()
	if before == nil {
		return
	}
	_, sure := before.current(time.Now())
	before.retire()
	t.mu.Lock()
	defer t.mu.Unlock()
	if sure.After(t.sure) {
		t.sure = sure
	}
}

// judge has it found out whether the kind may be followed, if it might not.
func (t *target) judge() {
	if k := t.reflector(); k != nil && t.targets.admits(t.kind, k.kind.Kind) != nil {
		k.mu.Lock()
		restart := k.restart
		k.mu.Unlock()
		restart(errJudged)
	}
}

func (t *target) reflector() *kindReflector {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.k
}

// withdraw takes the objects of the kind off the bus: they need not be gone.
func (t *target) withdraw(ctx context.Context) error {
	r := t.targets.reflector
	incarnation, err := r.incarnation(ctx)
	if err != nil {
		return err
	}
	last, err := r.cfg.Publisher.PurgeTargets(ctx, r.cfg.Cluster, t.kind)
	if err != nil {
		return err
	}
	m := t.marker(incarnation)
	m.Withdrawn, m.LastSequence = true, last
	return r.cfg.Publisher.Marker(ctx, m)
}

// retire drops what waits: it is of a kind that is served otherwise now, or registered no more.
func (k *kindReflector) retire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.waiting {
		k.lane.backlog.Release(s.weight())
	}
	clear(k.waiting)
	k.sweep = nil
	k.cfg.Metrics.forgetKind(k.label())
}

// hear notes that the API server told something of the kind.
func (k *kindReflector) hear() {
	k.mu.Lock()
	k.heard = time.Now()
	k.mu.Unlock()
	k.cfg.Health.heard(k.label())
}
