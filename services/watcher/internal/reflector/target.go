package reflector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

const (
	// patience is for how many looks at the stream the API server may tell nothing of a kind before that counts as not observed.
	patience = 10
	// minRefused and maxRefused bound the wait before a kind is looked for again that could not be followed.
	minRefused = 500 * time.Millisecond
	maxRefused = 10 * time.Second
)

var errTooMany = fmt.Errorf("%d kinds are followed already, and no more than that are", maxTargets)

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
	// has says that it is among those for whom there is room.
	has bool
	// failure is why it could not be followed when that was tried last; empty while it is.
	failure string
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
		if time.Since(began) > 2*maxRefused || err == nil || errors.Is(err, errDue) || errors.Is(err, errEpoch) || errors.Is(err, errAgain) {
			attempt = 0
			continue
		}
		if t.fail(describe(err)) && t.following.Err() == nil {
			t.targets.reflector.cfg.Log.WarnContext(ctx, "a kind of targets is not followed; trying again", "kind", t.kind.String(), "error", err)
		}
		backoff.Backoff{Min: minRefused, Max: maxRefused}.Wait(t.following, attempt)
	}
	if t.has {
		t.targets.room.Release(1)
	}
	for attempt := 1; ctx.Err() == nil; attempt++ {
		if err := t.withdraw(ctx); err == nil {
			return
		}
		retries().Wait(ctx, attempt)
	}
}

// fail notes why it is not followed, and says whether that is news.
func (t *target) fail(why string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.failure
	t.failure = why
	return before != why
}

// resume finds out what the bus tells already: as long as that stands, nobody waits for more.
func (t *target) resume(ctx context.Context) {
	m, err := t.targets.reflector.cfg.Publisher.LastMarker(ctx, t.targets.reflector.cfg.Cluster, t.kind)
	if err == nil && !m.GetWithdrawn() {
		t.marked(m)
	}
}

// follow follows the kind as the API server serves it now, until that fails.
func (t *target) follow() error {
	if !t.has {
		if t.has = t.targets.room.TryAcquire(1); !t.has {
			return errTooMany
		}
	}
	kind, err := t.targets.registered.Find(t.following, t.kind)
	if err != nil {
		return err
	}
	t.mu.Lock()
	if t.k == nil || t.k.kind != kind {
		t.k = newKindReflector(t.targets.reflector, kind, t.targets.lane)
		t.k.marked, t.k.right = t.marked, t.isRight
	}
	k := t.k
	t.failure = ""
	t.mu.Unlock()
	return k.follow(t.following)
}

func (t *target) reflector() *kindReflector {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.k
}

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

// check has the bus tell that the kind cannot be followed, as long as it cannot, and has it compared again once it can.
func (t *target) check(ctx context.Context, incarnation string) error {
	if t.following.Err() != nil {
		return nil //nolint:nilerr // It is being withdrawn.
	}
	t.mu.Lock()
	k, failure, isTold, problem := t.k, t.failure, t.told == asOf{incarnation, t.targets.reflector.epoch.current()}, t.problem
	t.mu.Unlock()
	most := patience * t.targets.reflector.cfg.CheckInterval
	silent, compared := most, false
	if k != nil {
		silent, compared = k.silent(time.Now())
	}
	switch {
	case failure != "" && (!isTold || problem != "" || silent >= most):
		return t.refuse(ctx, incarnation, failure)
	case failure != "" || k == nil:
	case silent >= most:
		return t.refuse(ctx, incarnation, fmt.Sprintf("the API server has told nothing of it for %s: the log of the watcher says why", most))
	case problem != "" && compared:
		k.sweepAgain() // What is on the bus may be old.
	}
	return nil
}

// describe says what is wrong, and what to do.
func describe(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "the watcher may not read it: apply the ClusterRole that `entail iam observe` prints"
	case errors.Is(err, source.ErrNotServed):
		return "the API server does not serve it: is its CustomResourceDefinition there, and serviceRef.name and plural right?"
	}
	return fmt.Sprintf("%.500s", err)
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
		m.Kind, m.Namespaced = k.kind.Kind, !k.kind.Global
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

// silent is for how long the API server has told nothing of the kind, which it may tell of at any time while a watch is open, or
// what it told has not been on the bus, and whether all that it had was compared.
func (k *kindReflector) silent(now time.Time) (silent time.Duration, compared bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opened.IsZero() {
		silent = now.Sub(k.heard)
	}
	for _, s := range k.waiting {
		if k.sweep == nil {
			silent = max(silent, now.Sub(s.ObservedAt))
		}
	}
	return silent, k.sweep == nil && k.stream != ""
}

// hear notes that the API server told something of the kind.
func (k *kindReflector) hear() {
	k.mu.Lock()
	k.heard = time.Now()
	k.mu.Unlock()
	k.cfg.Health.heard(k.label())
}
