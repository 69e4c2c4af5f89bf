package view

import (
	"slices"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// tombstones are the last states of objects that were deleted, or that were there before their
// cluster went back in time: of each object one, however many had its name.
type tombstones[T any] struct {
	shelf *shelf[bearer, T]
	// uids are those of the objects that had a name.
	uids map[event.Key][]string
}

// bearer is one of the objects that had a name.
type bearer struct {
	event.Key
	uid string
}

func newTombstones[T any](extract map[string]func(*T) []string) *tombstones[T] {
	return &tombstones[T]{shelf: newShelf[bearer](extract), uids: map[event.Key][]string{}}
}

func (t *tombstones[T]) get(k event.Key, uid string) *Object[T] {
	return t.shelf.objects[bearer{k, uid}]
}

func (t *tombstones[T]) put(o *Object[T]) {
	if t.get(o.Key, o.UID) == nil {
		t.uids[o.Key] = append(slices.Clip(t.uids[o.Key]), o.UID)
	}
	t.shelf.put(bearer{o.Key, o.UID}, o)
}

func (t *tombstones[T]) remove(k event.Key, uid string) {
	t.shelf.remove(bearer{k, uid})
	t.uids[k] = slices.DeleteFunc(slices.Clone(t.uids[k]), func(other string) bool { return other == uid })
	if len(t.uids[k]) == 0 {
		delete(t.uids, k)
	}
}

// of lists those of one name, the newest first.
func (t *tombstones[T]) of(k event.Key) []*Object[T] {
	found := make([]*Object[T], 0, len(t.uids[k]))
	for _, uid := range t.uids[k] {
		found = append(found, t.get(k, uid))
	}
	slices.SortStableFunc(found, func(a, b *Object[T]) int {
		switch {
		case a.NewerThan(b.Change):
			return -1
		case b.NewerThan(a.Change):
			return 1
		}
		return 0
	})
	return found
}

// displace keeps the last state of an object that another, or another epoch, takes the place of by a change.
func (t *tombstones[T]) displace(was *Object[T], by event.Change) {
	o := *was
	o.Deleted, o.ObservedAt, o.PublishedAt, o.ExpiresAt = true, by.ObservedAt, by.PublishedAt, time.Time{}
	if is := t.get(o.Key, o.UID); is == nil || o.NewerThan(is.Change) {
		t.put(&o)
	}
}

// expire forgets deletions that the bus no longer keeps either.
func (t *tombstones[T]) expire(now time.Time) {
	for at, o := range t.shelf.objects {
		if expired(o.Change, now) {
			t.remove(at.Key, at.uid)
		}
	}
}

// expired reports whether the bus keeps a deletion no longer. Of one that did not come from there
// the usual time counts.
func expired(c event.Change, now time.Time) bool {
	if c.ExpiresAt.IsZero() {
		return c.ObservedAt.Add(topology.TombstoneTTL).Before(now)
	}
	return c.ExpiresAt.Before(now)
}
