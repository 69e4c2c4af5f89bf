package informer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestViewIsIncompleteWhileAMessageIsRefused(t *testing.T) {
	b := newBus(t)
	last := b.put(change("a", 1), change("b", 2))
	b.mark(kinds.Stores(), 2, last)
	f := b.feed()
	f.await(t, "a b ")
	b.raw(topology.ChangeSubject(key("b")), "\xff")
	f.refuses(t)
	if _, lives := f.stores.Get(key("b")); !lives {
		t.Error("a refused message deletes its object")
	}
	b.put(change("b", 3))
	f.await(t, "a b ")
}

func TestViewLoadsAgainAfterARefusedMessageWasRemoved(t *testing.T) {
	b := newBus(t)
	last := b.put(change("a", 1))
	b.mark(kinds.Stores(), 1, last)
	f := b.feed()
	f.await(t, "a ")
	refused, err := b.js.Publish(t.Context(), topology.ChangeSubject(key("b")), []byte("?"))
	b.must(err)
	f.refuses(t)
	b.must(b.Remove(t.Context(), refused.Sequence))
	f.await(t, "a ")
}

// refuses waits until the view reports a refused message.
func (f *fed) refuses(t *testing.T) {
	t.Helper()
	f.eventually(t, func() error {
		if err := f.Complete(); err == nil || !strings.Contains(err.Error(), "was refused") {
			return fmt.Errorf("the view reports %v", err)
		}
		return nil
	})
}

func TestViewIsIncompleteWhileServicesAreHalted(t *testing.T) {
	b := newBus(t)
	last := b.put(change("a", 1))
	b.mark(kinds.Stores(), 1, last)
	f := b.feed()
	f.await(t, "a ")
	b.barriers.Halted = "forged"
	f.eventually(t, func() error {
		b.beat(0)
		if err := f.Complete(); err == nil || !strings.Contains(err.Error(), "all services are halted: forged") {
			return fmt.Errorf("the view reports %v", err)
		}
		return nil
	})
	b.barriers.Halted = ""
	f.eventually(t, func() error { b.beat(0); return f.Complete() })
}
