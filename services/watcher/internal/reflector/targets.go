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

// targetKinds follows the kinds that ProtectedResources register, without the content of the objects. It leaves out the
// kinds of IAM, which the watcher follows with their content anyway.
type targetKinds struct {
	registered *registrationTracker
	reflector  *reflector
	lane       *publishQueue

	mu sync.Mutex
	// admitted holds the kinds within the bound.
	admitted map[event.GroupResource]bool
	// all holds the kinds that are followed or are being withdrawn.
	all map[event.GroupResource]*targetKind
}

func newTargetKinds(r *reflector, of *registrationTracker) *targetKinds {
	return &targetKinds{registered: of, reflector: r, lane: newPublishQueue(), all: map[event.GroupResource]*targetKind{}}
}

// followRegisteredKinds follows all registered kinds until ctx ends. It withdraws all other kinds on the stream.
func (t *targetKinds) followRegisteredKinds(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	before := t.listMarkedKinds(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.registered.changed:
		}
		wanted, known := t.kindsToFollow()
		if !known {
			continue
		}
		t.selectFollowedKinds(wanted)
		for _, kind := range append(wanted, before...) {
			t.startFollowingKind(ctx, kind, &running)
		}
		before = nil
		for kind, one := range t.followedKinds() {
			if slices.Contains(wanted, kind) {
				one.recheckFollowable()
			} else {
				one.end()
			}
		}
		t.reflector.enqueueMarker(kinds.ProtectedResources())
	}
}

// kindsToFollow returns the kinds to follow, first registered first, and false before they are known.
func (t *targetKinds) kindsToFollow() (wanted []event.GroupResource, known bool) {
	wanted, known = t.registered.registeredResources()
	return slices.DeleteFunc(wanted, iam.IsIAMResource), known
}

// selectFollowedKinds admits the first kinds up to the bound, so later registrations do not displace earlier ones.
func (t *targetKinds) selectFollowedKinds(wanted []event.GroupResource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.admitted = map[event.GroupResource]bool{}
	for _, kind := range wanted[:min(maxTargets, len(wanted))] {
		t.admitted[kind] = true
	}
}

// checkFollowable returns an error if the resource, with this kind at the API server, cannot be followed.
func (t *targetKinds) checkFollowable(of event.GroupResource, kind string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.admitted[of]:
		return errTooMany
	case !t.registered.hasRegisteredKind(of, kind):
		return fmt.Errorf("%w %s: is spec.kind right?", errMisnamed, kind)
	}
	return nil
}

// listMarkedKinds lists the kinds with a marker on the stream.
func (t *targetKinds) listMarkedKinds(ctx context.Context) []event.GroupResource {
	for attempt := 1; ; attempt++ {
		marked, err := t.reflector.cfg.Publisher.MarkedTargetKinds(ctx, t.reflector.cfg.Cluster)
		if err == nil {
			return marked
		}
		t.reflector.cfg.Log.WarnContext(ctx, "the kinds on the stream cannot be read; trying again", "error", err)
		if !retryBackoff().Wait(ctx, attempt) {
			return nil
		}
	}
}

// startFollowingKind follows a kind that is not followed yet. A kind that is being withdrawn is considered again
// afterwards.
func (t *targetKinds) startFollowingKind(ctx context.Context, kind event.GroupResource, running *sync.WaitGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[kind] != nil {
		return
	}
	one := &targetKind{targets: t, kind: kind, sure: time.Now()}
	one.following, one.end = context.WithCancel(ctx)
	t.all[kind] = one
	running.Go(func() {
		one.followUntilUnregistered(ctx)
		t.mu.Lock()
		delete(t.all, kind)
		t.mu.Unlock()
		t.registered.notifyChanged()
	})
}

func (t *targetKinds) followedKinds() map[event.GroupResource]*targetKind {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.all)
}

// targetKindReflectors returns the reflectors of all kinds that can be followed.
func (t *targetKinds) targetKindReflectors() []*kindReflector {
	var all []*kindReflector
	for _, one := range t.followedKinds() {
		if k := one.currentReflector(); k != nil {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b *kindReflector) int { return strings.Compare(a.kindLabel(), b.kindLabel()) })
	return all
}

// hasAllMarkers reports whether every registered kind has a marker for this stream and epoch.
func (t *targetKinds) hasAllMarkers(as markerScope) bool {
	wanted, known := t.kindsToFollow()
	all := t.followedKinds()
	for _, kind := range wanted {
		if one := all[kind]; one == nil || !one.hasMarkerFor(as) {
			return false
		}
	}
	return known
}

// checkTargetKinds checks all kinds: first whether they are followed, which usually needs no request to NATS.
func (t *targetKinds) checkTargetKinds(ctx context.Context, streamID string) error {
	for _, one := range t.followedKinds() {
		if err := one.updateProblemMarker(ctx, streamID); err != nil {
			return err
		}
	}
	for _, k := range t.targetKindReflectors() {
		if err := k.checkKindOnStream(ctx, streamID); err != nil {
			return err
		}
	}
	return nil
}

// lateKindErr returns an error if a kind has been late for too long and its marker does not report that yet.
func (t *targetKinds) lateKindErr(now time.Time) error {
	for kind, one := range t.followedKinds() {
		if one.isLateUnreported(now) {
			return fmt.Errorf("%s is late, and its marker does not report that yet", kind)
		}
	}
	return nil
}

// uncomparedKindErr returns nil if each registered kind was compared with the API server since the last doubt, or is
// not observed.
func (t *targetKinds) uncomparedKindErr() error {
	wanted, _ := t.kindsToFollow()
	all := t.followedKinds()
	for _, kind := range wanted {
		if one := all[kind]; one == nil || !one.isComparedOrUnobserved() {
			return fmt.Errorf("%s is not compared with the API server yet", kind)
		}
	}
	return nil
}

// forgetMarkers records that the markers of all kinds may be missing on the stream.
func (t *targetKinds) forgetMarkers() {
	for _, one := range t.followedKinds() {
		one.recordMarkerState(markerScope{}, one.markerProblem())
	}
}
