package reflector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	// maxTargets bounds the kinds that are followed as targets.
	maxTargets = 256
	// targetWorkers is the number of workers for targets, in a lane of their own. Targets may be very many, and no
	// other kind must wait for them.
	targetWorkers = 8
)

// targets follows the kinds that ProtectedResources register, without the content of the objects. It leaves out the
// kinds of IAM, which the watcher follows with their content anyway.
type targets struct {
	registered *registrations
	reflector  *reflector
	lane       *lane

	mu sync.Mutex
	// admitted holds the kinds within the bound.
	admitted map[event.GroupResource]bool
	// all holds the kinds that are followed or are being withdrawn.
	all map[event.GroupResource]*target
}

func newTargets(r *reflector, of *registrations) *targets {
	return &targets{registered: of, reflector: r, lane: newLane(), all: map[event.GroupResource]*target{}}
}

// runTargets follows all registered kinds until ctx ends. It withdraws all other kinds on the stream.
func (t *targets) runTargets(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	before := t.resumeMarked(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.registered.changed:
		}
		wanted, known := t.wantedKinds()
		if !known {
			continue
		}
		t.admitKinds(wanted)
		for _, kind := range append(wanted, before...) {
			t.startTarget(ctx, kind, &running)
		}
		before = nil
		for kind, one := range t.followedTargets() {
			if slices.Contains(wanted, kind) {
				one.recheck()
			} else {
				one.end()
			}
		}
		t.reflector.enqueueMarker(kinds.ProtectedResources())
	}
}

// wantedKinds returns the kinds to follow, first registered first, and false before they are known.
func (t *targets) wantedKinds() (wantedKinds []event.GroupResource, known bool) {
	wantedKinds, known = t.registered.registeredKinds()
	return slices.DeleteFunc(wantedKinds, iam.IsWatched), known
}

// admitKinds admits the first kinds up to the bound, so later registrations do not displace earlier ones.
func (t *targets) admitKinds(wanted []event.GroupResource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.admitted = map[event.GroupResource]bool{}
	for _, kind := range wanted[:min(maxTargets, len(wanted))] {
		t.admitted[kind] = true
	}
}

// checkAdmitted returns an error if the resource, with this kind at the API server, cannot be followed.
func (t *targets) checkAdmitted(of event.GroupResource, kind string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.admitted[of]:
		return errTooMany
	case !t.registered.matchesKind(of, kind):
		return fmt.Errorf("%w %s: is spec.kind right?", errMisnamed, kind)
	}
	return nil
}

// resumeMarked lists the kinds with a marker on the stream.
func (t *targets) resumeMarked(ctx context.Context) []event.GroupResource {
	for attempt := 1; ; attempt++ {
		marked, err := t.reflector.cfg.Publisher.MarkedTargets(ctx, t.reflector.cfg.Cluster)
		if err == nil {
			return marked
		}
		t.reflector.cfg.Log.WarnContext(ctx, "the kinds on the stream cannot be read; trying again", "error", err)
		if !retryBackoff().Wait(ctx, attempt) {
			return nil
		}
	}
}

// startTarget follows a kind that is not followed yet. A kind that is being withdrawn is considered again afterwards.
func (t *targets) startTarget(ctx context.Context, kind event.GroupResource, running *sync.WaitGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[kind] != nil {
		return
	}
	one := &target{targets: t, kind: kind, sure: time.Now()}
	one.following, one.end = context.WithCancel(ctx)
	t.all[kind] = one
	running.Go(func() {
		one.runTarget(ctx)
		t.mu.Lock()
		delete(t.all, kind)
		t.mu.Unlock()
		t.registered.notifyChanged()
	})
}

func (t *targets) followedTargets() map[event.GroupResource]*target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.all)
}

// followableReflectors returns the reflectors of all kinds that can be followed.
func (t *targets) followableReflectors() []*kindReflector {
	var all []*kindReflector
	for _, one := range t.followedTargets() {
		if k := one.currentReflector(); k != nil {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b *kindReflector) int { return strings.Compare(a.kindLabel(), b.kindLabel()) })
	return all
}

// hasMarkers reports whether every registered kind has a marker for this stream and epoch.
func (t *targets) hasMarkers(as asOf) bool {
	wanted, known := t.wantedKinds()
	all := t.followedTargets()
	for _, kind := range wanted {
		if one := all[kind]; one == nil || !one.isTold(as) {
			return false
		}
	}
	return known
}

// checkTargets checks all kinds: first whether they are followed, which usually needs no request to NATS.
func (t *targets) checkTargets(ctx context.Context, incarnation string) error {
	for _, one := range t.followedTargets() {
		if err := one.checkTarget(ctx, incarnation); err != nil {
			return err
		}
	}
	for _, k := range t.followableReflectors() {
		if err := k.checkKind(ctx, incarnation); err != nil {
			return err
		}
	}
	return nil
}

// isSettled reports whether no kind is late for too long.
func (t *targets) isSettled(now time.Time) bool {
	for _, one := range t.followedTargets() {
		if one.isLate(now) {
			return false
		}
	}
	return true
}

// areCompared reports whether each registered kind was compared with the API server since the last doubt, or is not
// observed.
func (t *targets) areCompared() bool {
	wanted, _ := t.wantedKinds()
	all := t.followedTargets()
	for _, kind := range wanted {
		if one := all[kind]; one == nil || !one.isCompared() {
			return false
		}
	}
	return true
}

// forgetMarkers records that the markers of all kinds may be missing on the stream.
func (t *targets) forgetMarkers() {
	for _, one := range t.followedTargets() {
		one.announce(asOf{}, one.refusalText())
	}
}
