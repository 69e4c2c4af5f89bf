package view

import (
	"iter"
	"slices"
	"sort"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// tombstones holds the last states of objects that were deleted, or that existed before their cluster went back in
// time: one per UID, several per name.
type tombstones[T any] struct {
	shelf *shelf[bearer, T]
	// named lists the tombstones of a name, the oldest first. Anybody can make many of one name, one after the other.
	named map[event.Key][]*Object[T]
}

// bearer identifies one of the objects that had a name.
type bearer struct {
	event.Key
	uid string
}

func newTombstones[T any](extract map[string]func(*T) []string) *tombstones[T] {
	return &tombstones[T]{shelf: newShelf[bearer](extract), named: map[event.Key][]*Object[T]{}}
}

func (t *tombstones[T]) get(k event.Key, uid string) *Object[T] {
	return t.shelf.objects[bearer{k, uid}]
}

func (t *tombstones[T]) put(o *Object[T]) {
	t.remove(o.Key, o.UID)
	all := t.named[o.Key]
	at := sort.Search(len(all), func(i int) bool { return !o.NewerThan(all[i].Change) })
	t.named[o.Key] = slices.Insert(all, at, o)
	t.shelf.put(bearer{o.Key, o.UID}, o)
}

func (t *tombstones[T]) remove(k event.Key, uid string) {
	is := t.get(k, uid)
	if is == nil {
		return
	}
	t.shelf.remove(bearer{k, uid})
	at := slices.Index(t.named[k], is)
	if t.named[k] = slices.Delete(t.named[k], at, at+1); len(t.named[k]) == 0 {
		delete(t.named, k)
	}
}

// of yields the tombstones of a name, the newest first.
func (t *tombstones[T]) of(k event.Key) iter.Seq[*Object[T]] {
	return func(yield func(*Object[T]) bool) {
		for _, o := range slices.Backward(t.named[k]) {
			if !yield(o) {
				return
			}
		}
	}
}

// displace buries an object that another object, or another epoch, replaces by a change.
func (t *tombstones[T]) displace(was *Object[T], by event.Change) {
	o := *was
	o.Deleted, o.ObservedAt, o.PublishedAt, o.ExpiresAt = true, by.ObservedAt, by.PublishedAt, time.Time{}
	if is := t.get(o.Key, o.UID); is == nil || o.NewerThan(is.Change) {
		t.put(&o)
	}
}

// expire drops tombstones that the stream no longer keeps either.
func (t *tombstones[T]) expire(now time.Time) {
	for at, o := range t.shelf.objects {
		if expired(o.Change, now) {
			t.remove(at.Key, at.uid)
		}
	}
}

// expired reports whether the stream no longer keeps a deletion. The usual lifetime counts for one that did not come
// from the stream.
func expired(c event.Change, now time.Time) bool {
	if c.ExpiresAt.IsZero() {
		return c.ObservedAt.Add(topology.TombstoneTTL).Before(now)
	}
	return c.ExpiresAt.Before(now)
}
