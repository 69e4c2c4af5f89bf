package view

import (
	"cmp"
	"encoding/json"
	"iter"
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

type content[T any] struct {
	live, gone map[event.Key]*Object[T]
	index      map[indexKey]map[*Object[T]]struct{}
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
func Register[T any](v *View, kind kinds.Kind, indexes map[string]func(*T) []string) *Table[T] {
	empty := newContent[T]()
	t := &Table[T]{mu: &v.mu, extract: indexes, shown: empty, writing: empty}
	v.tables[kind.GroupResource] = t
	return t
}

func newContent[T any]() *content[T] {
	return &content[T]{
		live: map[event.Key]*Object[T]{}, gone: map[event.Key]*Object[T]{},
		index: map[indexKey]map[*Object[T]]struct{}{},
	}
}

// Get finds a live object.
func (t *Table[T]) Get(k event.Key) (Object[T], bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return found(t.shown.live[k])
}

// Tombstone finds a deleted object. Deletions are known for as long as the bus keeps them.
func (t *Table[T]) Tombstone(k event.Key) (Object[T], bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return found(t.shown.gone[k])
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
	return sorted(maps.Keys(t.shown.index[indexKey{index, value}]))
}

// Count is how many objects [Table.By] would list.
func (t *Table[T]) Count(index, value string) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.shown.index[indexKey{index, value}])
}

// All lists the live objects, ordered by key.
func (t *Table[T]) All() []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return sorted(maps.Values(t.shown.live))
}

// Tombstones lists the deleted objects, ordered by key.
func (t *Table[T]) Tombstones() []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return sorted(maps.Values(t.shown.gone))
}

func sorted[T any](objects iter.Seq[*Object[T]]) []Object[T] {
	all := []Object[T]{}
	for o := range objects {
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b Object[T]) int {
		return cmp.Or(cmp.Compare(a.Key.Cluster, b.Key.Cluster), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return all
}

// held is the object of a key, living or not; nil when there never was one.
func (c *content[T]) held(k event.Key) *Object[T] {
	if o := c.live[k]; o != nil {
		return o
	}
	return c.gone[k]
}

func (t *Table[T]) newer(c event.Change) bool {
	held := t.writing.held(c.Key)
	return held == nil || c.NewerThan(held.Change)
}

func (t *Table[T]) decode(c event.Change) (func(), error) {
	o := &Object[T]{Change: c}
	o.Object = nil
	if len(c.Object) > 0 {
		o.Value = new(T)
		if err := json.Unmarshal(c.Object, o.Value); err != nil {
			return nil, err
		}
		o.Value = fitted(o.Value)
	}
	return func() { t.put(o) }, nil
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

// put stores o unless something newer came while it was decoded.
func (t *Table[T]) put(o *Object[T]) {
	if !t.newer(o.Change) {
		return
	}
	c := t.writing
	if was := c.live[o.Key]; was != nil {
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

func (t *Table[T]) eachIndex(o *Object[T], f func(indexKey, *Object[T])) {
	if o.Value == nil {
		return
	}
	for name, extract := range t.extract {
		for _, value := range extract(o.Value) {
			f(indexKey{name, value}, o)
		}
	}
}

func (c *content[T]) enter(ik indexKey, o *Object[T]) {
	if c.index[ik] == nil {
		c.index[ik] = map[*Object[T]]struct{}{}
	}
	c.index[ik][o] = struct{}{}
}

func (c *content[T]) unindex(ik indexKey, o *Object[T]) {
	delete(c.index[ik], o)
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
		if was := before.held(k); was != nil {
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
