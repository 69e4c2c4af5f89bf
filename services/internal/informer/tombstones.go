package informer

import (
	"iter"
	"slices"
	"sort"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// tombstones holds the last states of deleted objects, and of objects that existed before the cluster's history was
// rewound. Each UID has one tombstone; a name may have several.
type tombstones[T any] struct {
	shelf *indexer[tombstoneKey, T]
	// named lists the tombstones of each name, the oldest first. Users can create many of them by deleting and
	// creating an object again.
	named map[event.Key][]*Object[T]
}

// tombstoneKey identifies one of the objects that had a name.
type tombstoneKey struct {
	event.Key
	uid string
}

func newTombstones[T any](extract map[string]func(*T) []string) *tombstones[T] {
	return &tombstones[T]{shelf: newIndexer[tombstoneKey](extract), named: map[event.Key][]*Object[T]{}}
}

func (t *tombstones[T]) getTombstone(k event.Key, uid string) *Object[T] {
	return t.shelf.objects[tombstoneKey{k, uid}]
}

func (t *tombstones[T]) putTombstone(o *Object[T]) {
	t.removeTombstone(o.Key, o.UID)
	all := t.named[o.Key]
	at := sort.Search(len(all), func(i int) bool { return !o.IsNewerThan(all[i].Change) })
	t.named[o.Key] = slices.Insert(all, at, o)
	t.shelf.putObject(tombstoneKey{o.Key, o.UID}, o)
}

func (t *tombstones[T]) removeTombstone(k event.Key, uid string) {
	is := t.getTombstone(k, uid)
	if is == nil {
		return
	}
	t.shelf.removeKey(tombstoneKey{k, uid})
	at := slices.Index(t.named[k], is)
	if t.named[k] = slices.Delete(t.named[k], at, at+1); len(t.named[k]) == 0 {
		delete(t.named, k)
	}
}

// tombstonesOf yields the tombstones of a name, the newest first.
func (t *tombstones[T]) tombstonesOf(k event.Key) iter.Seq[*Object[T]] {
	return func(yield func(*Object[T]) bool) {
		for _, o := range slices.Backward(t.named[k]) {
			if !yield(o) {
				return
			}
		}
	}
}

// addTombstoneForReplaced turns an object into a tombstone because another object, or a new epoch, replaced it by the
// change by.
func (t *tombstones[T]) addTombstoneForReplaced(was *Object[T], by event.Change) {
	o := *was
	o.Deleted, o.ObservedAt, o.PublishedAt, o.ExpiresAt = true, by.ObservedAt, by.PublishedAt, time.Time{}
	if is := t.getTombstone(o.Key, o.UID); is == nil || o.IsNewerThan(is.Change) {
		t.putTombstone(&o)
	}
}

// removeExpired removes the tombstones that have also expired in the stream.
func (t *tombstones[T]) removeExpired(now time.Time) {
	for at, o := range t.shelf.objects {
		if isExpiredTombstone(o.Change, now) {
			t.removeTombstone(at.Key, at.uid)
		}
	}
}

// isExpiredTombstone reports whether the stream no longer keeps the tombstone c. A tombstone that did not come from the
// stream has the usual lifetime [topology.TombstoneTTL].
func isExpiredTombstone(c event.Change, now time.Time) bool {
	if c.ExpiresAt.IsZero() {
		return c.ObservedAt.Add(topology.TombstoneTTL).Before(now)
	}
	return c.ExpiresAt.Before(now)
}
