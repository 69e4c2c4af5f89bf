package informer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

type object struct {
	Tags []string `json:"tags"`
}

func newView(fetch func(context.Context, event.Key) ([]byte, error)) (*informer.Informer, *informer.Lister[object]) {
	v := informer.New(informer.Config{FetchLargeObject: fetch, Log: slog.New(slog.DiscardHandler)})
	return v, informer.RegisterLister(v, kinds.Stores(), map[string]func(*object) []string{"tag": func(o *object) []string { return o.Tags }})
}

func key(name string) event.Key {
	return event.Key{Cluster: "c", GroupResource: kinds.Stores().GroupResource, Name: name}
}

func change(name string, version int, edit ...func(*event.Change)) event.Change {
	c := event.Change{Key: key(name), UID: "u", ResourceVersion: fmt.Sprint(version), Epoch: "e", Object: []byte(`{"tags":["x","y"]}`)}
	for _, f := range edit {
		f(&c)
	}
	return c
}

func tags(json string) func(*event.Change) {
	return func(c *event.Change) { c.Object = []byte(json) }
}

func deleted(c *event.Change) { c.Deleted, c.Object = true, nil }

func apply(t *testing.T, v *informer.Informer, changes ...event.Change) {
	t.Helper()
	for _, c := range changes {
		if err := v.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

func names[T any](objects []informer.Object[T]) string {
	all := ""
	for _, o := range objects {
		all += o.Key.Name + " "
	}
	return all
}

func TestIndexesFollowChanges(t *testing.T) {
	t.Parallel()
	v, table := newView(nil)
	apply(t, v, change("b", 1), change("a", 2), change("c", 3, tags(`{"tags":["y"]}`)))
	if got := names(table.ListByIndex("tag", "x")); got != "a b " {
		t.Errorf("x: %q", got)
	}
	apply(t, v, change("a", 4, tags(`{"tags":["z"]}`)), change("b", 5, deleted))
	for tag, want := range map[string]string{"x": "", "y": "c ", "z": "a "} {
		if got := names(table.ListByIndex("tag", tag)); got != want || table.CountByIndex("tag", tag)*2 != len(want) {
			t.Errorf("%s: %q, %d; want %q", tag, got, table.CountByIndex("tag", tag), want)
		}
	}
	if got := names(table.All()); got != "a c " {
		t.Errorf("all: %q", got)
	}
}

// State that was computed from objects is valid as long as the counter is the same. The counter changes after every
// change between unequal states.
func TestChangeCountIgnoresEquivalentStates(t *testing.T) {
	t.Parallel()
	v, table := newView(nil)
	edits := 0
	table.SetEquivalence(func(was, is *object) bool { return slices.Equal(was.Tags, is.Tags) }, func(k event.Key, was, is *informer.Object[object]) {
		if edits++; k != key("a") || was.ResourceVersion >= is.ResourceVersion {
			t.Errorf("told of %s: %+v in the place of %+v", k, is, was)
		}
	})
	number := table.ChangeCount()
	for _, step := range []struct {
		what    string
		change  event.Change
		changes bool
		edits   int
	}{
		{"a new object", change("a", 1), true, 0},
		{"the same in other words", change("a", 2), false, 0},
		{"something else", change("a", 3, tags(`{"tags":["x"]}`)), true, 1},
		{"an older state", change("a", 2), false, 1},
		{"another of the name", change("a", 4, tags(`{"tags":["x"]}`), func(c *event.Change) { c.UID = "another" }), true, 2},
		{"a deletion", change("a", 5, deleted, func(c *event.Change) { c.UID = "another" }), true, 2},
		{"the deletion of the one before", change("a", 3, deleted), false, 2},
	} {
		apply(t, v, step.change)
		if edits != step.edits {
			t.Errorf("%s: told of %d, want %d", step.what, edits, step.edits)
		}
		if now := table.ChangeCount(); now > number != step.changes || now < number {
			t.Errorf("%s: %d after %d", step.what, now, number)
		}
		number = table.ChangeCount()
	}
}

func TestIndexSkipsEmptyValues(t *testing.T) {
	t.Parallel()
	v, table := newView(nil)
	apply(t, v, change("a", 1, tags(`{"tags":["","x"]}`)))
	if got, has := table.CountByIndex("tag", ""), table.CountByIndex("tag", "x"); got != 0 || has != 1 {
		t.Errorf("%d under nothing, %d under x", got, has)
	}
}

func TestTombstonesByIndexUsesLastState(t *testing.T) {
	t.Parallel()
	another := func(c *event.Change) { c.UID = "another" }
	for name, c := range map[string]struct {
		changes    []event.Change
		gone       string
		lastUID    string
		live, tomb bool
	}{
		"alive":                     {[]event.Change{change("a", 1)}, "", "u", true, false},
		"deleted without its state": {[]event.Change{change("a", 1), change("a", 2, deleted)}, "a ", "u", false, true},
		"never seen alive":          {[]event.Change{change("a", 2, func(c *event.Change) { c.Deleted = true })}, "a ", "u", false, true},
		"its name was taken":        {[]event.Change{change("a", 1), change("a", 2, deleted), change("a", 3, another)}, "a ", "another", true, false},
		"the other was deleted, too": {
			[]event.Change{change("a", 1), change("a", 2, deleted), change("a", 3, another, tags(`{}`)), change("a", 4, another, deleted)}, "a ", "another", false, true,
		},
		"back under the same UID": {[]event.Change{change("a", 1), change("a", 2, deleted), change("a", 3)}, "", "u", true, false},
		"never there":             {nil, "", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			v, table := newView(nil)
			apply(t, v, c.changes...)
			if got := names(table.TombstonesByIndex("tag", "x")); got != c.gone {
				t.Errorf("gone by x: %q, want %q", got, c.gone)
			}
			if o, live := table.GetOrTombstone(key("a")); live != c.live || o.UID != c.lastUID {
				t.Errorf("last: %q, live %v", o.UID, live)
			}
			if _, ok := table.Tombstone(key("a")); ok != c.tomb {
				t.Errorf("tombstone: %v", ok)
			}
		})
	}
}

func TestOnChangeIsCalledForEachStoredChange(t *testing.T) {
	t.Parallel()
	v, table := newView(nil)
	told := ""
	v.OnChange(func(k event.Key) {
		_, live := table.Get(k)
		told += fmt.Sprintf("%s %v ", k.Name, live)
	})
	apply(t, v, change("a", 1), change("b", 2), change("a", 1), change("a", 3, deleted))
	if told != "a true b true a false " {
		t.Errorf("told %q", told)
	}
}

func TestApplyReturnsAfterCallbacks(t *testing.T) {
	v, _ := newView(nil)
	c := change("a", 1)
	again := make(chan error, 1)
	var told int
	v.OnChange(func(event.Key) {
		if told++; told > 1 {
			return
		}
		go func() { again <- v.Apply(t.Context(), c) }()
		select {
		case err := <-again:
			t.Error("the same change is taken in before everybody has been told of it")
			again <- err
		case <-time.After(20 * time.Millisecond):
		}
	})
	apply(t, v, c)
	if err := <-again; err != nil || told != 1 {
		t.Errorf("told %d times, %v", told, err)
	}
}

func TestInformerCanHoldOneCluster(t *testing.T) {
	t.Parallel()
	for cluster, want := range map[string]string{"": "a b ", "c": "a ", "other": "b "} {
		v := informer.New(informer.Config{Cluster: cluster, Log: slog.New(slog.DiscardHandler)})
		table := informer.RegisterLister[object](v, kinds.Stores(), nil)
		apply(t, v, change("a", 1), change("b", 2, func(c *event.Change) { c.Key.Cluster = "other" }))
		if got := names(table.All()); got != want {
			t.Errorf("of cluster %q: %q, want %q", cluster, got, want)
		}
	}
}

func TestApplyDropsOlderChange(t *testing.T) {
	t.Parallel()
	v, table := newView(nil)
	apply(t, v, change("a", 5), change("a", 4, tags(`{}`)), change("a", 5, tags(`{}`)))
	if o, _ := table.Get(key("a")); o.ResourceVersion != "5" || len(o.Value.Tags) != 2 {
		t.Errorf("held %+v", o)
	}
	apply(t, v, change("a", 6, deleted), change("a", 5))
	if _, ok := table.Get(key("a")); ok {
		t.Error("an old state came back after the deletion")
	}
	o, ok := table.Tombstone(key("a"))
	if !ok || o.Value == nil || len(o.Value.Tags) != 2 {
		t.Errorf("tombstone lost the last known state: %+v", o)
	}
	apply(t, v, change("a", 7, func(c *event.Change) { c.UID = "u2" }))
	if _, ok := table.Tombstone(key("a")); ok {
		t.Error("re-created object still has a tombstone")
	}
}

func TestApplyFetchesLargeObject(t *testing.T) {
	t.Parallel()
	omitted := func(c *event.Change) { c.Omitted, c.Object = true, nil }
	var answer []byte
	var fail error
	v, table := newView(func(context.Context, event.Key) ([]byte, error) { return answer, fail })
	fail = fault.Unavailable(errors.New("API server is down"))
	if err := v.Apply(t.Context(), change("a", 1, omitted)); !fault.IsUnavailable(err) {
		t.Errorf("error of the outage: %v", err)
	}
	fail = nil
	apply(t, v, change("a", 1, omitted))
	if _, ok := table.Get(key("a")); ok {
		t.Error("an object that is gone appeared")
	}
	answer = []byte(`{"tags":["big"]}`)
	apply(t, v, change("a", 1, omitted))
	if got := names(table.ListByIndex("tag", "big")); got != "a " {
		t.Errorf("found %q", got)
	}
}

func TestApplyUndecodableObjectIsTerminalAndKeepsOldState(t *testing.T) {
	t.Parallel()
	v, table := newView(nil)
	apply(t, v, change("a", 1))
	for name, c := range map[string]event.Change{
		"no JSON":       change("a", 2, tags(`{`)),
		"another shape": change("a", 2, tags(`{"tags":1}`)),
		"another kind":  change("a", 2, func(c *event.Change) { c.Key.Resource = "secrets" }),
	} {
		if err := v.Apply(t.Context(), c); !fault.IsTerminal(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if o, ok := table.Get(key("a")); !ok || o.ResourceVersion != "1" {
		t.Errorf("held %+v", o)
	}
}

func TestApplyDeletionDoesNotNeedObject(t *testing.T) {
	t.Parallel()
	v, table := newView(nil)
	unreadable := func(c *event.Change) { c.Deleted, c.Object = true, []byte(`{`) }
	apply(t, v, change("a", 1), change("a", 2, unreadable), change("b", 3, unreadable))
	if got := names(table.All()); got != "" {
		t.Errorf("%q lives", got)
	}
	if o, ok := table.Tombstone(key("a")); !ok || o.Value == nil {
		t.Errorf("tombstone of what was known: %+v", o)
	}
	if o, ok := table.Tombstone(key("b")); !ok || o.Value != nil {
		t.Errorf("tombstone of what was not: %+v", o)
	}
}

func TestKeysPublishedSince(t *testing.T) {
	t.Parallel()
	v, _ := newView(nil)
	at := func(minute int) func(*event.Change) {
		return func(c *event.Change) { c.PublishedAt = time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	}
	another := func(c *event.Change) { c.UID = "u2" }
	apply(t, v, change("old", 1, at(1)), change("gone", 2, at(1)), change("replaced", 3, at(1)),
		change("new", 4, at(3)), change("gone", 5, at(3), deleted), change("replaced", 6, at(3), another))
	var got []string
	for _, k := range v.KeysPublishedSince(time.Date(2026, 1, 1, 0, 2, 0, 0, time.UTC)) {
		got = append(got, k.Name)
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, []string{"gone", "new", "replaced"}) {
		t.Errorf("got %v", got)
	}
}

func TestKeepUndecodableDropsOldValue(t *testing.T) {
	t.Parallel()
	for _, blank := range []bool{false, true} {
		v := informer.New(informer.Config{KeepUndecodable: blank, Log: slog.New(slog.DiscardHandler)})
		table := informer.RegisterLister(v, kinds.Stores(), map[string]func(*object) []string{"tag": func(o *object) []string { return o.Tags }})
		var told int
		v.OnChange(func(event.Key) { told++ })
		apply(t, v, change("a", 1))
		if err := v.Apply(t.Context(), change("a", 2, tags(`{"tags":1}`))); !fault.IsTerminal(err) {
			t.Errorf("it is taken with %v", err)
		}
		o, live := table.Get(key("a"))
		if !live || (o.Value == nil) != blank || (told == 2) != blank || (table.CountByIndex("tag", "x") == 0) != blank {
			t.Errorf("blank %v: it is %+v, and was told of %d times", blank, o, told)
		}
		apply(t, v, change("a", 1), change("a", 3))
		if o, _ := table.Get(key("a")); o.Value == nil || o.ResourceVersion != "3" || table.CountByIndex("tag", "x") != 1 {
			t.Errorf("blank %v: what came then is %+v", blank, o)
		}
	}
}
