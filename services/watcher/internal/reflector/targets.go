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
	// maxTargets bounds how many kinds are followed for being targets.
	maxTargets = 256
	// targetWorkers publish their objects: there may be very many, and nothing else is to wait for them.
	targetWorkers = 8
)

// targets follows the kinds that are registered, but for those of IAM itself, which are followed for what they say.
type targets struct {
	registered *registrations
	reflector  *reflector
	lane       *lane

	mu sync.Mutex
	// admitted are those for whom there is room.
	admitted map[event.GroupResource]bool
	// all are the kinds that are followed, and those that are being withdrawn.
	all map[event.GroupResource]*target
}

func newTargets(r *reflector, of *registrations) *targets {
	return &targets{registered: of, reflector: r, lane: newLane(), all: map[event.GroupResource]*target{}}
}

// run follows whatever is registered until ctx ends. What the bus has of other kinds is withdrawn.
func (t *targets) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	before := t.resume(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.registered.changed:
		}
		wanted, known := t.wanted()
		if !known {
			continue
		}
		t.admit(wanted)
		for _, kind := range append(wanted, before...) {
			t.start(ctx, kind, &running)
		}
		before = nil
		for kind, one := range t.followed() {
			if slices.Contains(wanted, kind) {
				one.judge()
			} else {
				one.end()
			}
		}
		t.reflector.mark(kinds.ProtectedResources())
	}
}

// wanted are the kinds that are to be followed, those first that were registered first; false before that is known.
func (t *targets) wanted() (wanted []event.GroupResource, known bool) {
	wanted, known = t.registered.kinds()
	return slices.DeleteFunc(wanted, iam.Follows), known
}

// admit gives room to as many as there is for: whoever registers more harms none that was there before.
func (t *targets) admit(wanted []event.GroupResource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.admitted = map[event.GroupResource]bool{}
	for _, kind := range wanted[:min(maxTargets, len(wanted))] {
		t.admitted[kind] = true
	}
}

// admits says why a kind cannot be followed that the API server calls so.
func (t *targets) admits(of event.GroupResource, kind string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.admitted[of]:
		return errTooMany
	case !t.registered.calls(of, kind):
		return fmt.Errorf("%w %s: is spec.kind right?", errMisnamed, kind)
	}
	return nil
}

// resume lists the kinds that the bus tells of.
func (t *targets) resume(ctx context.Context) []event.GroupResource {
	for attempt := 1; ; attempt++ {
		marked, err := t.reflector.cfg.Publisher.MarkedTargets(ctx, t.reflector.cfg.Cluster)
		if err == nil {
			return marked
		}
		t.reflector.cfg.Log.WarnContext(ctx, "which kinds the bus tells of is not known; trying again", "error", err)
		if !retries().Wait(ctx, attempt) {
			return nil
		}
	}
}

// start follows a kind, if it is not followed. One that is being withdrawn is looked at again afterwards.
func (t *targets) start(ctx context.Context, kind event.GroupResource, running *sync.WaitGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[kind] != nil {
		return
	}
	one := &target{targets: t, kind: kind, sure: time.Now()}
	one.following, one.end = context.WithCancel(ctx)
	t.all[kind] = one
	running.Go(func() {
		one.run(ctx)
		t.mu.Lock()
		delete(t.all, kind)
		t.mu.Unlock()
		t.registered.tell()
	})
}

func (t *targets) followed() map[event.GroupResource]*target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.all)
}

// reflectors are those of all that can be followed.
func (t *targets) reflectors() []*kindReflector {
	var all []*kindReflector
	for _, one := range t.followed() {
		if k := one.reflector(); k != nil {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b *kindReflector) int { return strings.Compare(a.label(), b.label()) })
	return all
}

// told says whether the bus tells of every registered kind whether it is observed, as of then.
func (t *targets) told(as asOf) bool {
	wanted, known := t.wanted()
	all := t.followed()
	for _, kind := range wanted {
		if one := all[kind]; one == nil || !one.isTold(as) {
			return false
		}
	}
	return known
}

// check looks after all of them: first whether they are followed, which as a rule takes no question to the bus.
func (t *targets) check(ctx context.Context, incarnation string) error {
	for _, one := range t.followed() {
		if err := one.check(ctx, incarnation); err != nil {
			return err
		}
	}
	for _, k := range t.reflectors() {
		if err := k.check(ctx, incarnation); err != nil {
			return err
		}
	}
	return nil
}

// settled says that the bus tells nothing of any that is too old.
func (t *targets) settled(now time.Time) bool {
	for _, one := range t.followed() {
		if one.isLate(now) {
			return false
		}
	}
	return true
}

// unmark says that what was told of any may not be on the bus any more.
func (t *targets) unmark() {
	for _, one := range t.followed() {
		one.tell(asOf{}, one.refused())
	}
}
