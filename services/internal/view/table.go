package view

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
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

type content[T any] struct {
	live, gone map[event.Key]Object[T]
	index      map[indexKey]map[event.Key]struct{}
}

type indexKey struct{ index, value string }

// table is what the view needs of any Table.
type table interface {
	newer(c event.Change) bool
	// decode does the costly part outside of the lock; the function it returns needs the lock.
	decode(c event.Change) (commit func(), err error)
	appendKeys(keys []event.Key) []event.Key
	size() int64
	// begin starts a reload into an empty table, unseen by readers until finish.
	begin()
	finish()
	expire(before time.Time)
}

// Register declares a table of one kind, with indexes by name: each function returns
// the values under which an object is found with [Table.By]. Call it before [View.Run].
func Register[T any](v *View, kind topology.Kind, indexes map[string]func(*T) []string) *Table[T] {
	empty := newContent[T]()
	t := &Table[T]{mu: &v.mu, extract: indexes, shown: empty, writing: empty}
	v.tables[kind.GroupResource] = t
	return t
}

func newContent[T any]() *content[T] {
	return &content[T]{
		live: map[event.Key]Object[T]{}, gone: map[event.Key]Object[T]{},
		index: map[indexKey]map[event.Key]struct{}{},
	}
}

// Get finds a live object.
func (t *Table[T]) Get(k event.Key) (Object[T], bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	o, ok := t.shown.live[k]
	return o, ok
}

// Tombstone finds a deleted object. Deletions are known for as long as the bus keeps them.
func (t *Table[T]) Tombstone(k event.Key) (Object[T], bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	o, ok := t.shown.gone[k]
	return o, ok
}

// By lists the live objects with a value in an index, ordered by key.
func (t *Table[T]) By(index, value string) []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	keys := t.shown.index[indexKey{index, value}]
	found := make([]Object[T], 0, len(keys))
	for k := range keys {
		found = append(found, t.shown.live[k])
	}
	return sorted(found)
}

// All lists the live objects, ordered by key.
func (t *Table[T]) All() []Object[T] {
	return t.list(func() map[event.Key]Object[T] { return t.shown.live })
}

// Tombstones lists the deleted objects, ordered by key.
func (t *Table[T]) Tombstones() []Object[T] {
	return t.list(func() map[event.Key]Object[T] { return t.shown.gone })
}

func (t *Table[T]) list(which func() map[event.Key]Object[T]) []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	objects := which()
	found := make([]Object[T], 0, len(objects))
	for _, o := range objects {
		found = append(found, o)
	}
	return sorted(found)
}

func sorted[T any](objects []Object[T]) []Object[T] {
	slices.SortFunc(objects, func(a, b Object[T]) int {
		return cmp.Or(cmp.Compare(a.Key.Cluster, b.Key.Cluster), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return objects
}

func (c *content[T]) held(k event.Key) (Object[T], bool) {
	if o, ok := c.live[k]; ok {
		return o, true
	}
	o, ok := c.gone[k]
	return o, ok
}

func (t *Table[T]) newer(c event.Change) bool {
	held, ok := t.writing.held(c.Key)
	return !ok || c.NewerThan(held.Change)
}

func (t *Table[T]) decode(c event.Change) (func(), error) {
	o := Object[T]{Change: c}
	o.Object = nil
	if len(c.Object) > 0 {
		o.Value = new(T)
		if err := json.Unmarshal(c.Object, o.Value); err != nil {
			return nil, err
		}
	}
	return func() { t.put(o) }, nil
}

// put stores o unless something newer came while it was decoded.
func (t *Table[T]) put(o Object[T]) {
	if !t.newer(o.Change) {
		return
	}
	c := t.writing
	if was, ok := c.live[o.Key]; ok {
		t.eachIndex(was, c.unindex)
		delete(c.live, o.Key)
		if o.Value == nil && o.UID == was.UID {
			o.Value = was.Value
		}
	}
	delete(c.gone, o.Key)
	if o.Deleted {
		c.gone[o.Key] = o
		return
	}
	c.live[o.Key] = o
	t.eachIndex(o, c.enter)
}

func (t *Table[T]) eachIndex(o Object[T], f func(indexKey, event.Key)) {
	if o.Value == nil {
		return
	}
	for name, extract := range t.extract {
		for _, value := range extract(o.Value) {
			f(indexKey{name, value}, o.Key)
		}
	}
}

func (c *content[T]) enter(ik indexKey, k event.Key) {
	if c.index[ik] == nil {
		c.index[ik] = map[event.Key]struct{}{}
	}
	c.index[ik][k] = struct{}{}
}

func (c *content[T]) unindex(ik indexKey, k event.Key) {
	delete(c.index[ik], k)
	if len(c.index[ik]) == 0 {
		delete(c.index, ik)
	}
}

func (t *Table[T]) begin() { t.writing = newContent[T]() }

// finish shows what was loaded. What readers saw before and the bus does not hold yet,
// because this process wrote it itself, stays.
func (t *Table[T]) finish() {
	before := t.shown
	for k := range t.writing.live {
		if was, ok := before.held(k); ok {
			t.put(was)
		}
	}
	t.shown = t.writing
}

// expire forgets deletions that the bus no longer keeps either.
func (t *Table[T]) expire(before time.Time) {
	for k, o := range t.shown.gone {
		if o.ObservedAt.Before(before) {
			delete(t.shown.gone, k)
		}
	}
}

func (t *Table[T]) appendKeys(keys []event.Key) []event.Key {
	keys = slices.AppendSeq(keys, maps.Keys(t.shown.live))
	return slices.AppendSeq(keys, maps.Keys(t.shown.gone))
}

func (t *Table[T]) size() int64 { return int64(len(t.shown.live)) }
