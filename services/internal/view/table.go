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
	// Value is nil only for a deletion whose last state is unknown, and by [Config.Blank].
	Value *T
}

// Table holds the objects of one kind.
type Table[T any] struct {
	mu      *sync.RWMutex
	extract map[string]func(*T) []string
	// shown is what readers see, writing where changes go: the same but during a reload.
	shown, writing *content[T]
}

// content is the living objects, and those that were deleted: also when others have their names by now.
type content[T any] struct {
	live *shelf[event.Key, T]
	gone *tombstones[T]
	// denied are states that the API server contradicted. If it does because the cluster went back in time, they are what
	// was before.
	denied map[event.Key]*Object[T]
}

// table is what the view needs of any Table.
type table interface {
	newer(c event.Change) bool
	// decode does the costly part outside of the lock; the function it returns needs the lock. What cannot be decoded may
	// be taken in blank.
	decode(c event.Change, blank bool) (commit func() (taken bool), err error)
	appendKeys(keys []event.Key) []event.Key
	appendPublished(keys []event.Key, since time.Time) []event.Key
	// size is how many live objects there are in a cluster.
	size(cluster string) int64
	lives(k event.Key) bool
	// believe drops what contradicts what is there, unless another state is held by now.
	believe(held, is event.Change) bool
	// begin starts a reload into an empty table, unseen by readers until finish.
	begin()
	finish()
	expire(now time.Time)
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

// Tombstone finds the object that had a name last, if none has it now. Deletions are known for as
// long as the bus keeps them.
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
	if o, live = found(t.shown.live.objects[k]); live {
		return o, true
	}
	for _, gone := range t.shown.gone.of(k) {
		return *gone, false
	}
	return o, false
}

// Gone lists the last states of all objects that had a name and are deleted, the newest first. One
// of the same UID as the living object is from before the cluster went back in time.
func (t *Table[T]) Gone(k event.Key) []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []Object[T]
	for _, gone := range t.shown.gone.of(k) {
		all = append(all, *gone)
	}
	return all
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
	return t.shown.gone.shelf.by(indexKey{index, value})
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

// newer reports whether c tells more than what is held. The deletion of an object says nothing
// about another one, or about the same in another epoch.
func (t *Table[T]) newer(c event.Change) bool {
	live := t.writing.live.objects[c.Key]
	if c.Deleted {
		gone := t.writing.gone.get(c.Key, c.UID)
		return (gone == nil || c.NewerThan(gone.Change)) &&
			(live == nil || live.UID != c.UID || live.Epoch != c.Epoch || c.NewerThan(live.Change))
	}
	for _, gone := range t.writing.gone.of(c.Key) {
		if !c.NewerThan(gone.Change) {
			return false
		}
	}
	return live == nil || c.NewerThan(live.Change)
}

func (t *Table[T]) decode(c event.Change, blank bool) (func() bool, error) {
	o := &Object[T]{Change: c}
	o.Object = nil
	if len(c.Object) > 0 {
		value := new(T)
		if err := json.Unmarshal(c.Object, value); err == nil {
			o.Value = fitted(value)
		} else if !c.Deleted && blank {
			return func() bool { return t.putBlank(o) }, err
		} else if !c.Deleted { // That an object is gone needs no body.
			return nil, err
		}
	}
	return func() bool { return t.put(o) }, nil
}

// putBlank takes in an object without a value.
func (t *Table[T]) putBlank(o *Object[T]) (taken bool) {
	if taken = t.newer(o.Change); taken {
		t.writing.replace(t.writing.live.objects[o.Key], o)
	}
	return taken
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
	switch {
	case !o.Deleted:
		c.replace(was, o)
	case was != nil && (was.UID == o.UID || was.Epoch == o.Epoch) && o.NewerThan(was.Change):
		if c.live.remove(o.Key); was.UID != o.UID { // It went before the one that is deleted came.
			c.gone.displace(was, o.Change)
		}
		fallthrough
	default:
		c.gone.put(o)
	}
	return true
}

// replace makes o the living object of its name. What had the name is gone.
func (c *content[T]) replace(was, o *Object[T]) {
	if was != nil && (was.UID != o.UID || was.Epoch != o.Epoch) {
		c.gone.displace(was, o.Change)
	}
	if denied := c.denied[o.Key]; denied != nil && denied.Epoch != o.Epoch {
		c.gone.displace(denied, o.Change)
		delete(c.denied, o.Key)
	}
	if gone := c.gone.get(o.Key, o.UID); gone != nil && gone.Epoch == o.Epoch {
		c.gone.remove(o.Key, o.UID)
	}
	c.live.put(o.Key, o)
}

func (t *Table[T]) believe(held, is event.Change) bool {
	believed := is.NewerThan(held) || t.deny(held, is)
	if believed {
		t.outlive(is)
	}
	return believed
}

// deny drops a state in favour of what is, and reports whether that was held, or nothing is that could tell otherwise.
func (t *Table[T]) deny(lie, is event.Change) bool {
	c := t.writing
	held := func(o *Object[T]) bool {
		return o != nil && o.UID == lie.UID && o.Epoch == lie.Epoch && o.ResourceVersion == lie.ResourceVersion && o.Deleted == lie.Deleted
	}
	live, gone := c.live.objects[lie.Key], c.gone.get(lie.Key, lie.UID)
	switch {
	case held(live):
		c.live.remove(lie.Key)
		c.denied[lie.Key] = live
		if own := c.gone.get(is.Key, is.UID); own != nil && own.UID != lie.UID && own.Epoch == is.Epoch && own.ResourceVersion == is.ResourceVersion {
			c.gone.remove(is.Key, is.UID) // The lie displaced it.
		}
	case live == nil && held(gone):
		c.gone.remove(lie.Key, lie.UID)
		c.denied[lie.Key] = gone
	default:
		return live == nil && gone == nil
	}
	return true
}

// outlive drops deletions of others of its name that an object is there in spite of. That of the object itself, if that is
// newer, is believed: others may have come and gone since.
func (t *Table[T]) outlive(is event.Change) {
	gone := t.writing.gone
	if own := gone.get(is.Key, is.UID); own != nil && !is.NewerThan(own.Change) {
		return
	}
	for _, o := range gone.of(is.Key) {
		if o.UID != is.UID && o.Epoch == is.Epoch && !is.NewerThan(o.Change) {
			gone.remove(is.Key, o.UID)
		}
	}
}

func (t *Table[T]) begin() {
	t.writing = &content[T]{newShelf[event.Key](t.extract), newTombstones(t.extract), map[event.Key]*Object[T]{}}
}

// finish shows what was loaded. What readers saw before and the bus does not hold yet, because
// this process wrote it itself, stays. So do deletions, of which the bus may not tell again. What
// is of another epoch than what was loaded is no more than a memory.
func (t *Table[T]) finish() {
	before, loaded := t.shown, t.writing
	for k, is := range loaded.live.objects {
		was := before.live.objects[k]
		switch {
		case was == nil:
		case was.Epoch == is.Epoch && was.NewerThan(is.Change):
			t.put(was)
		case was.UID != is.UID || was.Epoch != is.Epoch:
			loaded.gone.displace(was, is.Change)
		}
	}
	for k, denied := range before.denied {
		if is := loaded.live.objects[k]; is != nil && is.Epoch != denied.Epoch {
			loaded.gone.displace(denied, is.Change)
		} else {
			loaded.denied[k] = denied
		}
	}
	for at, gone := range before.gone.shelf.objects {
		is := loaded.live.objects[at.Key]
		if is != nil && is.UID == gone.UID && is.Epoch != gone.Epoch {
			loaded.gone.displace(gone, gone.Change)
		} else {
			t.put(gone)
		}
	}
	t.shown = loaded
}

func (t *Table[T]) expire(now time.Time) {
	t.shown.gone.expire(now)
	maps.DeleteFunc(t.shown.denied, func(_ event.Key, o *Object[T]) bool { return expired(o.Change, now) })
}

func (t *Table[T]) appendKeys(keys []event.Key) []event.Key {
	keys = slices.AppendSeq(keys, maps.Keys(t.shown.live.objects))
	return slices.AppendSeq(keys, maps.Keys(t.shown.gone.uids))
}

func (t *Table[T]) appendPublished(keys []event.Key, since time.Time) []event.Key {
	for k, o := range t.shown.live.objects {
		if o.PublishedAt.After(since) {
			keys = append(keys, k)
		}
	}
	for at, o := range t.shown.gone.shelf.objects {
		if o.PublishedAt.After(since) {
			keys = append(keys, at.Key)
		}
	}
	return keys
}

func (t *Table[T]) size(cluster string) (n int64) {
	for k := range t.shown.live.objects {
		if k.Cluster == cluster {
			n++
		}
	}
	return n
}

func (t *Table[T]) lives(k event.Key) bool { return t.shown.live.objects[k] != nil }
