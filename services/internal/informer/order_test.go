package informer_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entail-dev/entail/services/internal/event"
)

// changeHistory holds changes of objects with a few names in order: creations, updates, deletions and re-creations. now
// is the newest state of each name.
type changeHistory struct {
	changes []event.Change
	now     map[string]event.Change
}

func drawChangeHistory(t *rapid.T) changeHistory {
	h := changeHistory{now: map[string]event.Change{}}
	for version := range rapid.IntRange(1, 30).Draw(t, "changes") {
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
		was, known := h.now[name]
		tag := rapid.SampledFrom([]string{`{}`, `{"tags":["x"]}`, `{"tags":["y"]}`, `{"tags":["x","y"]}`}).Draw(t, "object")
		c := change(name, version+1, tags(tag))
		switch {
		case !known || was.Deleted:
			c.UID = fmt.Sprintf("%s-%d", name, version)
		case rapid.Bool().Draw(t, "deleted"):
			c.UID, c.Object, c.Deleted = was.UID, was.Object, true
			// The watcher missed the deletion event, so the deletion has no resourceVersion of its own.
			if rapid.Bool().Draw(t, "swept") {
				c.ResourceVersion = was.ResourceVersion
			}
		default:
			c.UID = was.UID
		}
		h.changes, h.now[name] = append(h.changes, c), c
	}
	return h
}

// deliver returns the changes in a random order, some of them several times. It contains at least the newest change of
// each name.
func (h changeHistory) deliver(t *rapid.T) []event.Change {
	some := slices.Collect(maps.Values(h.now))
	for _, c := range h.changes {
		for range rapid.IntRange(0, 2).Draw(t, "times") {
			some = append(some, c)
		}
	}
	slices.SortFunc(some, func(a, b event.Change) int {
		return slices.Compare([]byte(a.DeduplicationID()), []byte(b.DeduplicationID()))
	})
	return rapid.Permutation(some).Draw(t, "order")
}

func TestInformerIsIndependentOfDeliveryOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawChangeHistory(t)
		v, table := newView(nil)
		for _, c := range h.deliver(t) {
			if err := v.Apply(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range h.now {
			got, live := table.GetOrTombstone(key(name))
			if live == want.Deleted || got.UID != want.UID || got.ResourceVersion != want.ResourceVersion {
				t.Errorf("%s is %s at version %s, live %v; newest is %s at %s, deleted %v",
					name, got.UID, got.ResourceVersion, live, want.UID, want.ResourceVersion, want.Deleted)
			}
		}
		other, _ := newView(nil)
		for _, c := range h.deliver(t) {
			if err := other.Apply(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if v.ContentDigest() != other.ContentDigest() {
			t.Errorf("in another order the digest is %x, not %x", other.ContentDigest(), v.ContentDigest())
		}
		if err := other.Apply(t.Context(), change("a", 1000, func(c *event.Change) { c.UID = "a-1000" })); err != nil {
			t.Fatal(err)
		}
		if v.ContentDigest() == other.ContentDigest() {
			t.Errorf("with another object the digest is %x, too", other.ContentDigest())
		}
		live, dead := 0, 0
		for _, c := range h.now {
			if c.Deleted {
				dead++
			} else {
				live++
			}
		}
		if len(table.All()) != live || len(v.Keys()) < live+dead {
			t.Errorf("%d live objects and %d keys, want %d and %d deleted", len(table.All()), len(v.Keys()), live, dead)
		}
		for _, tag := range []string{"x", "y", ""} {
			var want string
			for _, o := range table.All() {
				if tag != "" && slices.Contains(o.Value.Tags, tag) {
					want += o.Key.Name + " "
				}
			}
			if got := names(table.ListByIndex("tag", tag)); got != want || table.CountByIndex("tag", tag) != len(want)/2 {
				t.Errorf("with tag %q are %q, want %q", tag, got, want)
			}
			for _, o := range table.TombstonesByIndex("tag", tag) {
				if !o.Deleted || !slices.Contains(o.Value.Tags, tag) {
					t.Errorf("%s at version %s is among the deleted with tag %q", o.Key, o.ResourceVersion, tag)
				}
			}
		}
	})
}
