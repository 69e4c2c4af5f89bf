package view

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Object is one object of a [Table]. The bytes of the change have been decoded into
// Value and dropped. Value is shared: never modify it.
type Object[T any] struct {
	event.Change
	// Value is nil only for a deletion whose last state is unknown.
	Value *T
}

// Table holds the objects of one kind.
type Table[T any] struct {
	mu      *sync.RWMutex
	extract map[string]func(*T) []string
	// shown is what readers see, writing where changes go: the same but during a reload.
	shown, writing *content[T]
}

// content is the living objects, and of every key the last that was deleted: also when another
// has its name by now.
type content[T any] struct{ live, gone *shelf[T] }

// table is what the view needs of any Table.
type table interface {
	newer(c event.Change) bool
	// decode does the costly part outside of the lock; the function it returns needs the lock.
	decode(c event.Change) (commit func() (taken bool), err error)
	appendKeys(keys []event.Key) []event.Key
	appendChanged(keys []event.Key, since time.Time) []event.Key
	size() int64
	// begin starts a reload into an empty table, unseen by readers until finish.
	begin()
	finish()
	expire(before time.Time)
}

// Register declares a table of one kind, with indexes by name: each function returns the values
// under which an object is found with [Table.By] while it lives, and with [Table.GoneBy] after
// that. An empty value is none. Call it before [View.Run].
func Register[T any](v *View, kind kinds.Kind, indexes map[string]func(*T) []string) *Table[T] {
	t := &Table[T]{mu: &v.mu, extract: indexes}
	t.begin()
	t.shown = t.writing
	v.tables[kind.GroupResource] = t
	return t
}

// Get finds a live object.
func (t *Table[T]) Get(k event.Key) (Object[T], bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return found(t.shown.live.objects[k])
}

// Tombstone finds a deleted object. Deletions are known for as long as the bus keeps them.
func (t *Table[T]) Tombstone(k event.Key) (Object[T], bool) {
	o, live := t.Last(k)
	if live {
		return Object[T]{}, false
	}
	return o, o.UID != ""
}

// Last finds the newest known state of an object, living or not. Without any it has no UID.
func (t *Table[T]) Last(k event.Key) (o Object[T], live bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if o, live = found(t.shown.live.objects[k]); !live {
		o, _ = found(t.shown.gone.objects[k])
	}
	return o, live
}

func found[T any](o *Object[T]) (Object[T], bool) {
	if o == nil {
		return Object[T]{}, false
	}
	return *o, true
}

// By lists the live objects with a value in an index, ordered by key.
func (t *Table[T]) By(index, value string) []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.shown.live.by(indexKey{index, value})
}

// GoneBy lists the deleted objects whose last state has a value in an index, ordered by key.
// Other objects may have their names by now.
func (t *Table[T]) GoneBy(index, value string) []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.shown.gone.by(indexKey{index, value})
}

// Count is how many objects [Table.By] would list.
func (t *Table[T]) Count(index, value string) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.shown.live.index[indexKey{index, value}])
}

// All lists the live objects, ordered by key.
func (t *Table[T]) All() []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return sorted(maps.Values(t.shown.live.objects))
}

func (t *Table[T]) newer(c event.Change) bool {
	held := t.writing.live.objects[c.Key]
	if held == nil {
		held = t.writing.gone.objects[c.Key]
	}
	return held == nil || c.NewerThan(held.Change)
}

func (t *Table[T]) decode(c event.Change) (func() bool, error) {
	o := &Object[T]{Change: c}
	o.Object = nil
	if len(c.Object) > 0 {
		o.Value = new(T)
		if err := json.Unmarshal(c.Object, o.Value); err != nil {
			return nil, err
		}
		o.Value = fitted(o.Value)
	}
	return func() bool { return t.put(o) }, nil
}

// fitted is value in as little memory as it needs: without the room that decoding left
// in its slices, and with one text for all conditions that say the same.
func fitted[T any](value *T) *T {
	if c, ok := any(value).(interface{ DeepCopy() *T }); ok {
		value = c.DeepCopy()
	}
	if c, ok := any(value).(interface{ GetConditions() []metav1.Condition }); ok {
		said := c.GetConditions()
		for i := range said {
			for _, text := range []*string{&said[i].Type, &said[i].Reason, &said[i].Message} {
				*text = unique.Make(*text).Value()
			}
			said[i].Status = unique.Make(said[i].Status).Value()
		}
	}
	return value
}

// put stores o unless something as new came while it was decoded.
func (t *Table[T]) put(o *Object[T]) (taken bool) {
	if !t.newer(o.Change) {
		return false
	}
	c := t.writing
	was := c.live.objects[o.Key]
	if was != nil && was.UID == o.UID && o.Value == nil {
		o.Value = was.Value
	}
	if !o.Deleted {
		if gone := c.gone.objects[o.Key]; gone != nil && gone.UID == o.UID {
			c.gone.remove(o.Key)
		}
		c.live.put(o)
		return true
	}
	c.live.remove(o.Key)
	c.gone.put(o)
	return true
}

func (t *Table[T]) begin() { t.writing = &content[T]{newShelf(t.extract), newShelf(t.extract)} }

// finish shows what was loaded. What readers saw before and the bus does not hold yet, because
// this process wrote it itself, stays. So does what was deleted before another took its name, of
// which the bus does not tell again.
func (t *Table[T]) finish() {
	before, loaded := t.shown, t.writing
	for k := range loaded.live.objects {
		if was := before.live.objects[k]; was != nil {
			t.put(was)
		}
		gone := before.gone.objects[k]
		if gone == nil {
			continue
		}
		t.put(gone)
		if live := loaded.live.objects[k]; live != nil && live.UID != gone.UID && loaded.gone.objects[k] == nil {
			loaded.gone.put(gone)
		}
	}
	t.shown = loaded
}

// expire forgets deletions that the bus no longer keeps either.
func (t *Table[T]) expire(before time.Time) {
	for k, o := range t.shown.gone.objects {
		if o.ObservedAt.Before(before) {
			t.shown.gone.remove(k)
		}
	}
}

func (t *Table[T]) appendKeys(keys []event.Key) []event.Key {
	keys = slices.AppendSeq(keys, maps.Keys(t.shown.live.objects))
	return slices.AppendSeq(keys, maps.Keys(t.shown.gone.objects))
}

func (t *Table[T]) appendChanged(keys []event.Key, since time.Time) []event.Key {
	for _, s := range []*shelf[T]{t.shown.live, t.shown.gone} {
		for k, o := range s.objects {
			if o.ObservedAt.After(since) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

func (t *Table[T]) size() int64 { return int64(len(t.shown.live.objects)) }
