package reflector

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// listHook calls a function after each list, before the objects are compared.
type listHook struct {
	Source
	listed func()
}

func (h listHook) List(ctx context.Context, kind kinds.Kind, token string) (source.Page, error) {
	page, err := h.Source.List(ctx, kind, token)
	h.listed()
	return page, err
}

// newIdleReflector returns a reflector of Stores that does nothing by itself. listed is called after each list.
func newIdleReflector(t *testing.T, b *testNATS, c *fakeSource, listed func(*kindReflector)) (k *kindReflector) {
	t.Helper()
	cfg := b.config(listHook{c, func() { listed(k) }})
	r := &reflector{cfg: cfg, lane: laneOf(t), copies: map[string]bool{}}
	r.targets, r.audit = newTargetKinds(r, newRegistrationTracker(cfg.Source)), newStreamAuditor(r)
	t.Cleanup(r.targets.lane.shutDown)
	k = newKindReflector(r, kinds.Stores(), r.lane)
	r.kinds = []*kindReflector{k}
	r.epoch.advanceTo(c.epoch)
	return k
}

// publishAll publishes all objects of a cluster.
func publishAll(t *testing.T, b *testNATS, c *fakeSource) {
	t.Helper()
	for _, o := range c.objects {
		if _, err := b.p.PublishChange(t.Context(), o.Change, 0, publish.PublicationOptions{ContentHash: o.ContentHash}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRestartedRelistDoesNotPublishDeletion(t *testing.T) {
	for name, unserved := range map[string]bool{"listed": false, "not served": true} {
		t.Run(name, func(t *testing.T) {
			b, c := newTestNATS(t), newFakeSource()
			c.apply("a", "v1", "")
			c.apply("b", "v1", "")
			publishAll(t, b, c)
			c.unserved = unserved
			k := newIdleReflector(t, b, c, (*kindReflector).restartRelist)
			k.stream, k.due = "earlier", time.Now().Add(time.Hour) // The sweep is not the first of the term.
			if err := k.relistAndWatch(t.Context()); !errors.Is(err, errAgain) {
				t.Errorf("got %v, want %v", err, errAgain)
			}
			for name, s := range k.waiting {
				if s.Deleted {
					t.Errorf("the deletion of %s waits for publication", name)
				}
			}
		})
	}
}

// A backup may hold a forged body that was corrected since.
func TestRelistAfterDoubtReadsBodies(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	k := newIdleReflector(t, b, c, func(*kindReflector) {})
	k.stream, k.due = "one", time.Now().Add(time.Hour)
	for _, doubted := range []bool{false, true} {
		k.doubted = doubted
		if s, err := k.beginRelist(t.Context()); err != nil || s.bodies != doubted {
			t.Errorf("doubted is %t: it reads bodies: %t, %v", doubted, s.bodies, err)
		}
	}
}

func TestCheckRestartsRelistOfEarlierStream(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	k := newIdleReflector(t, b, c, func(*kindReflector) {})
	ctx, cancel := context.WithCancelCause(t.Context())
	k.sweep, k.restart = &relistProgress{streamID: "earlier"}, cancel
	if err := k.checkKindOnStream(t.Context(), "present"); err != nil {
		t.Fatal(err)
	}
	if got := context.Cause(ctx); !errors.Is(got, errAgain) {
		t.Errorf("the relist goes on: got %v, want %v", got, errAgain)
	}
}
