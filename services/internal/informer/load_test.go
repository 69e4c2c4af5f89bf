package informer_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

// derivedContent is state that is computed from all Stores, and then kept current by changes.
type derivedContent struct {
	mu    sync.Mutex
	names map[string]bool
	// late counts the times when the informer was complete before the derived state was current.
	late int
}

// follow keeps d current with v.
func (d *derivedContent) follow(v *informer.Informer, stores *informer.Lister[object]) {
	v.OnLoaded(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.names = map[string]bool{}
		for _, o := range stores.All() {
			d.names[o.Key.Name] = true
		}
		if v.IncompleteErr() == nil {
			d.late++
		}
	})
	v.OnChange(func(k event.Key) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if _, lives := stores.Get(k); lives && d.names != nil {
			d.names[k.Name] = true
		} else {
			delete(d.names, k.Name)
		}
	})
}

// held returns the derived state, read between two changes.
func (d *derivedContent) held(v *informer.Informer) (names string, late int) {
	v.RunBetweenChanges(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		names, late = strings.Join(slices.Sorted(maps.Keys(d.names)), " "), d.late
	})
	return names, late
}

func TestOnLoadedRunsBeforeInformerIsComplete(t *testing.T) {
	t.Parallel()
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 2, b.put(change("a", 1), change("b", 2)))
	f := b.feed()
	f.await(t, "a b ")
	if names, late := f.derived.held(f.Informer); names != "a b" || late > 0 {
		t.Errorf("derived is %q, too late %d times", names, late)
	}
	b.put(change("c", 3))
	f.await(t, "a b c ")
	if names, _ := f.derived.held(f.Informer); names != "a b c" {
		t.Errorf("after a change derived is %q", names)
	}
	b.replace() // Objects disappear without a deletion.
	b.mark(kinds.Stores(), 1, b.put(change("c", 3)))
	f.await(t, "c ")
	if names, late := f.derived.held(f.Informer); names != "c" || late > 0 {
		t.Errorf("after the stream was replaced derived is %q, too late %d times", names, late)
	}
}

func TestCheckLoadRequiresSameCompleteLoad(t *testing.T) {
	t.Parallel()
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 2, b.put(change("a", 1), change("b", 2)))
	f := b.feed()
	f.await(t, "a b ")
	load := f.LoadNumber()
	if err := f.CheckLoad(load); err != nil {
		t.Errorf("nothing happened: got %v", err)
	}
	b.raw(topology.ChangeSubject(key("b")), "\xff")
	f.refuses(t)
	if err := f.CheckLoad(load); !errors.Is(err, informer.ErrIncomplete) {
		t.Errorf("incomplete: got %v", err)
	}
	b.replace()
	b.mark(kinds.Stores(), 1, b.put(change("a", 1)))
	f.await(t, "a ")
	if err := f.CheckLoad(load); !errors.Is(err, informer.ErrIncomplete) || f.CheckLoad(f.LoadNumber()) != nil {
		t.Errorf("loaded again: got %v, and %v for the new load", err, f.CheckLoad(f.LoadNumber()))
	}
}
