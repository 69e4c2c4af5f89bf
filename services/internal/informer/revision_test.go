package informer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

// awaited waits until the informer has read up to a revision.
func (f *followingInformer) awaited(t *testing.T, revision string) error {
	t.Helper()
	sequence, began, err := topology.ParseRevision(revision)
	if err != nil {
		t.Fatal(err)
	}
	return f.AwaitRevision(t.Context(), sequence, began)
}

func TestAwaitRevisionWaitsForSequence(t *testing.T) {
	t.Parallel()
	b := newTestStreams(t)
	f := b.feed()
	b.mark(kinds.Stores(), 0, 0)
	f.await(t, "")
	streamID, err := b.StreamID(t.Context())
	b.must(err)
	for i := range 20 {
		at := b.put(change(fmt.Sprint("s", i), 1))
		if err := f.awaited(t, topology.FormatRevision(at, streamID)); err != nil {
			t.Fatal(err)
		}
		if _, ok := f.stores.Get(change(fmt.Sprint("s", i), 1).Key); !ok {
			t.Fatalf("what is at %d is not in the view", at)
		}
	}
	if err := f.awaited(t, f.Revision()); err != nil {
		t.Errorf("its own revision: %v", err)
	}
	other := change("m", 1, func(c *event.Change) { c.Key.GroupResource = kinds.AuthorizationModels().GroupResource })
	if err := f.awaited(t, topology.FormatRevision(b.put(other), streamID)); err != nil {
		t.Errorf("a state of a kind that the view does not follow: %v", err)
	}
}

func TestAwaitRevisionTimesOut(t *testing.T) {
	t.Parallel()
	b := newTestStreams(t)
	f := b.feed()
	b.mark(kinds.Stores(), 0, 0)
	f.await(t, "")
	streamID, err := b.StreamID(t.Context())
	b.must(err)
	if err := f.awaited(t, topology.FormatRevision(1<<40, streamID)); !errors.Is(err, informer.ErrIncomplete) {
		t.Errorf("a place behind the end: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.AwaitRevision(ctx, 1, time.Now().Add(time.Hour)); !errors.Is(err, informer.ErrIncomplete) {
		t.Errorf("a later stream, by who does not wait: %v", err)
	}
}

func TestAwaitRevisionAcceptsLaterStream(t *testing.T) {
	t.Parallel()
	b := newTestStreams(t)
	f := b.feed()
	b.mark(kinds.Stores(), 0, 0)
	f.await(t, "")
	old, err := b.StreamID(t.Context())
	b.must(err)
	b.replace()
	b.mark(kinds.Stores(), 1, b.put(change("new", 1)))
	f.await(t, "new ")
	if err := f.awaited(t, topology.FormatRevision(1<<40, old)); err != nil {
		t.Error(err)
	}
}
