package informer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func trees() kinds.Kind {
	return kinds.TargetKind(event.GroupResource{Group: "a", Resource: "trees"}, "v1", "Tree")
}

func tree(name string) event.Change {
	c := change(name, 1)
	c.Key.GroupResource = trees().GroupResource
	return c
}

// targetInformer is an informer that holds targets, and the callbacks that it has made.
type targetInformer struct {
	bus *testStreams
	*informer.Informer
	trees   *informer.Lister[object]
	reloads atomic.Int32

	mu sync.Mutex
	// heard holds the number of objects at each callback.
	heard []int
}

func (b *testStreams) forest() *targetInformer {
	b.t.Helper()
	v := informer.New(informer.Config{JS: b.js, Service: "test", Cluster: "c", Log: slog.New(slog.DiscardHandler)})
	informer.RegisterLister[object](v, kinds.Stores(), nil)
	f := &targetInformer{bus: b, Informer: v, trees: informer.RegisterTargetLister[object](v, nil)}
	v.OnReload(func() { f.reloads.Add(1) })
	v.OnTargetKindChange(func(kind event.GroupResource) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if kind == trees().GroupResource {
			f.heard = append(f.heard, len(f.trees.Keys()))
		}
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	return f
}

// says waits until the informer is complete, or incomplete, and returns the wanted status for trees.
func (f *targetInformer) says(t *testing.T, complete bool, want informer.TargetKindStatus) {
	t.Helper()
	(&followingInformer{Informer: f.Informer}).eventually(t, func() error {
		f.bus.beat(0)
		err := f.IncompleteErr()
		if is := f.TargetKindStatus("c", trees().GroupResource); is != want || (err == nil) != complete {
			return fmt.Errorf("it says %+v, want %+v; it is complete: %w", is, want, err)
		}
		return nil
	})
}

// For each registered kind, the informer must know whether it holds all objects, before a service concludes that an
// object does not exist.
func TestTargetKindStatusReportsObservation(t *testing.T) {
	t.Parallel()
	b := newTestStreams(t)
	at := b.put(tree("oak"), tree("elm"))
	b.mark(trees(), 2, at, target)
	b.mark(kinds.Stores(), 0, 0)
	f := b.forest()
	observed := informer.TargetKindStatus{Kind: "Tree", Namespaced: true, Observed: true}
	f.says(t, true, observed)
	if got := names(f.trees.All()); got != "elm oak " {
		t.Errorf("it holds %s", got)
	}
	b.mark(trees(), 2, at+1000, target)
	f.says(t, false, informer.TargetKindStatus{Kind: "Tree", Namespaced: true})
	b.mark(trees(), 3, b.put(tree("ash")), target)
	f.says(t, true, observed)
	b.mark(trees(), 0, 0, target, func(m *eventv1.SnapshotMarker) { m.Served, m.Problem = false, "no right" })
	f.says(t, true, informer.TargetKindStatus{Kind: "Tree", Namespaced: true, Problem: "no right"})
	b.mark(trees(), 3, at, target, func(m *eventv1.SnapshotMarker) { m.Problem = "silent" })
	f.says(t, true, informer.TargetKindStatus{Kind: "Tree", Namespaced: true, Problem: "silent"})
	b.mark(trees(), 3, at, target, func(m *eventv1.SnapshotMarker) { m.Served = false })
	f.says(t, true, informer.TargetKindStatus{Kind: "Tree", Namespaced: true})
	if len(f.trees.Keys()) != 3 {
		t.Error("what is not observed for a while is forgotten")
	}
	b.mark(trees(), 0, at+1000, target, func(m *eventv1.SnapshotMarker) { m.Served, m.Withdrawn = false, true })
	f.says(t, true, informer.TargetKindStatus{}) // No service waits for a kind that is not registered.
	b.mark(trees(), 0, at, target, func(m *eventv1.SnapshotMarker) { m.Served, m.Withdrawn = false, true })
	(&followingInformer{Informer: f.Informer}).eventually(t, func() error {
		if len(f.trees.Keys()) > 0 {
			return errors.New("what was withdrawn is held still")
		}
		return nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := f.heard[len(f.heard)-1]; last != 3 {
		t.Errorf("when that was told, it held %d", last)
	}
}

// A user who creates and deletes objects of a registered kind must not cause reloads of the stream.
func TestTargetCountMismatchDoesNotCauseReload(t *testing.T) {
	t.Parallel()
	b := newTestStreams(t)
	at := b.put(tree("oak"), tree("elm"))
	b.mark(trees(), 2, at, target)
	b.mark(kinds.Stores(), 0, 0)
	f := b.forest()
	observed := informer.TargetKindStatus{Kind: "Tree", Namespaced: true, Observed: true}
	f.says(t, true, observed)
	last := b.put(tree("ash"), tree("yew"), tree("fir"))
	b.mark(trees(), 4, last-1, target)
	(&followingInformer{Informer: f.Informer}).eventually(t, func() error {
		if n := len(f.trees.Keys()); n != 5 {
			return fmt.Errorf("it holds %d", n)
		}
		return nil
	})
	f.says(t, true, observed)
	if n := f.reloads.Load(); n > 0 {
		t.Errorf("it was read again %d times", n)
	}
	b.mark(trees(), 4, last, target) // This marker is wrong.
	(&followingInformer{Informer: f.Informer}).eventually(t, func() error {
		if f.reloads.Load() != 1 {
			return errors.New("what differs in number is not read again")
		}
		return nil
	})
	f.says(t, true, observed)
}

func target(m *eventv1.SnapshotMarker) { m.Target, m.Kind, m.Namespaced = true, "Tree", true }

// A snapshot marker of a target kind must not count for the same kind with its full objects.
func TestMarkerOfTargetsIsSeparateFromKind(t *testing.T) {
	t.Parallel()
	b := newTestStreams(t)
	stores := kinds.TargetKind(kinds.Stores().GroupResource, "v1", "Store")
	as := change("demo", 1)
	as.Key.Target = true
	at := b.put(as)
	b.mark(stores, 1, at, target)
	f := b.forest()
	f.says(t, false, informer.TargetKindStatus{})
	b.mark(kinds.Stores(), 0, 0)
	f.says(t, true, informer.TargetKindStatus{})
	if keys := f.trees.Keys(); len(keys) != 1 || !keys[0].Target {
		t.Error("the object of one is one of the other")
	}
}
