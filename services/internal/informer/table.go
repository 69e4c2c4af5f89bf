package informer

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Object is an entry of a [Lister]. It holds the decoded Value instead of the bytes of the change. Value is shared:
// never modify it.
type Object[T any] struct {
	event.Change
	// Value is nil only for a deletion whose last state is unknown, or by [Config.KeepUndecodable].
	Value *T
}

// Lister holds the objects of one kind.
type Lister[T any] struct {
	mu      *sync.RWMutex
	extract map[string]func(*T) []string
	alike   func(was, is *T) bool
	edited  func(k event.Key, was, is *Object[T])
	// Readers see shown. Changes go to writing. They are the same except during a reload.
	shown, writing *kindContents[T]
}

// kindTable is what the view needs of a [Lister] or [Forwarder].
type kindTable interface {
	holder
	isNewChange(c event.Change) bool
	// decodeChange does the costly part without the lock. The function that it returns needs the lock. With blank, an object
	// that cannot be decoded is stored without a value.
	decodeChange(c event.Change, blank bool) (commit func() (taken bool), err error)
	// overrideHeld drops the state held if is contradicts it. It reports whether the table now accepts is.
	overrideHeld(held, is event.Change) bool
	// beginLoad starts a reload into an empty table. Readers see it after finish.
	beginLoad()
	finishLoad()
	expireTombstones(now time.Time)
	// dropInSnapshot drops the objects of a kind without tombstones.
	dropInSnapshot(of snapshotScope)
}

// holder lists and counts the objects of a table.
type holder interface {
	appendKeys(keys []event.Key) []event.Key
	appendPublishedSince(keys []event.Key, since time.Time) []event.Key
	// countInSnapshot returns the number of live objects of a kind in a cluster, or in all clusters if the cluster is empty.
	countInSnapshot(of snapshotScope) int64
	hasLive(k event.Key) bool
	// contentDigest returns a hash over the states of all live objects.
	contentDigest() uint64
}

// RegisterLister declares a table of one kind with indexes. Each index function returns the values under which [Lister.ListByIndex]
// finds a live object, and [Lister.TombstonesByIndex] a deleted one. It ignores empty values. Call Register before [Informer.Run].
func RegisterLister[T any](v *Informer, kind kinds.Kind, indexes map[string]func(*T) []string) *Lister[T] {
	t := &Lister[T]{mu: &v.mu, extract: indexes}
	t.beginLoad()
	t.shown = t.writing
	v.tables[kind.GroupResource], v.named[kind.GroupResource] = t, kind.Named
	return t
}

// SetEquivalence sets which states of an object [Lister.ChangeCount] treats as equal. edited is called for each object that is
// replaced by a state that is not alike, before the callbacks of [Informer.OnChange]. It must be quick, and must not call
// the view. Call Alike before [Informer.Run].
func (t *Lister[T]) SetEquivalence(alike func(was, is *T) bool, edited func(k event.Key, was, is *Object[T])) {
	t.alike, t.edited = alike, edited
	t.writing.live.alike, t.writing.live.edited = alike, edited
}

// ChangeCount returns a counter that grows whenever live objects change, except between states that are alike. What a
// caller derived from the objects after reading the counter is valid as long as the counter is the same.
func (t *Lister[T]) ChangeCount() uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.shown.live.changed
}

// Get returns a live object.
func (t *Lister[T]) Get(k event.Key) (Object[T], bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return derefObject(t.shown.live.objects[k])
}

// Tombstone returns the last object that had a name, if no object has it now. Deletions are known as long as the stream
// keeps them.
func (t *Lister[T]) Tombstone(k event.Key) (Object[T], bool) {
	o, live := t.GetOrTombstone(k)
	if live {
		return Object[T]{}, false
	}
	return o, o.UID != ""
}

// GetOrTombstone returns the newest known state of an object, and reports whether the object is live. The UID is empty if none is
// known.
func (t *Lister[T]) GetOrTombstone(k event.Key) (o Object[T], live bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if o, live = derefObject(t.shown.live.objects[k]); live {
		return o, true
	}
	for gone := range t.shown.gone.tombstonesOf(k) {
		return *gone, false
	}
	return o, false
}

// Tombstones lists the last states of all deleted objects of a name, the newest first. An entry with the UID of the live
// object is from before the cluster went back in time.
func (t *Lister[T]) Tombstones(k event.Key) []Object[T] { return t.TombstonesSince(k, event.Change{}) }

// TombstonesSince lists the entries of [Lister.Tombstones] that are newer than one of them.
func (t *Lister[T]) TombstonesSince(k event.Key, one event.Change) []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []Object[T]
	for gone := range t.shown.gone.tombstonesOf(k) {
		if one.UID != "" && !gone.IsNewerThan(one) {
			break
		}
		all = append(all, *gone)
	}
	return all
}

func derefObject[T any](o *Object[T]) (Object[T], bool) {
	if o == nil {
		return Object[T]{}, false
	}
	return *o, true
}

// ListByIndex lists the live objects with a value in an index, ordered by key.
func (t *Lister[T]) ListByIndex(index, value string) []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.shown.live.objectsByIndex(indexKey{index, value})
}

// TombstonesByIndex lists the deleted objects whose last state has a value in an index, ordered by key. Other objects may have
// their names by now.
func (t *Lister[T]) TombstonesByIndex(index, value string) []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.shown.gone.shelf.objectsByIndex(indexKey{index, value})
}

// CountByIndex returns the number of objects that [Lister.ListByIndex] would list.
func (t *Lister[T]) CountByIndex(index, value string) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.shown.live.index[indexKey{index, value}])
}

// All lists the live objects, ordered by key.
func (t *Lister[T]) All() []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return sortObjects(maps.Values(t.shown.live.objects))
}

// Keys lists the names of the live objects.
func (t *Lister[T]) Keys() []event.Key {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Keys(t.shown.live.objects))
}

func (t *Lister[T]) beginLoad() {
	live := newIndexer[event.Key](t.extract)
	live.alike, live.edited = t.alike, t.edited
	t.writing = &kindContents[T]{live, newTombstones(t.extract), map[event.Key]*Object[T]{}}
}

// finishLoad makes the loaded content visible. It keeps answers of the API server that the stream does not hold yet, because
// this process wrote them itself, and tombstones that the stream may not bring again. Objects of another epoch become
// tombstones. Other states of the last load are dropped: that stream may have been another one.
func (t *Lister[T]) finishLoad() {
	before, loaded := t.shown, t.writing
	for k, is := range loaded.live.objects {
		was := before.live.objects[k]
		switch {
		case was == nil:
		case was.Epoch == is.Epoch && was.Sequence == 0 && was.IsNewerThan(is.Change):
			t.putVerbatim(was)
		case was.UID != is.UID || was.Epoch != is.Epoch:
			loaded.gone.buryDisplaced(withoutSequence(was), is.Change)
		}
	}
	for k, denied := range before.denied {
		if is := loaded.live.objects[k]; is != nil && is.Epoch != denied.Epoch {
			loaded.gone.buryDisplaced(withoutSequence(denied), is.Change)
		} else {
			loaded.denied[k] = withoutSequence(denied)
		}
	}
	for at, gone := range before.gone.shelf.objects {
		is := loaded.live.objects[at.Key]
		written := gone.Sequence == 0 && gone.TombstoneSequence == 0
		switch gone = withoutSequence(gone); {
		case is != nil && is.UID == gone.UID && is.Epoch != gone.Epoch:
			loaded.gone.buryDisplaced(gone, gone.Change)
		case is != nil && !written && gone.IsNewerThan(is.Change): // It was forged, or of a stream that was lost.
		case is == nil || is.UID != gone.UID || written:
			t.putObject(gone)
		}
	}
	loaded.live.changed += before.live.changed + 1
	t.shown = loaded
}

// withoutSequence returns a copy of an object of an earlier load. Sequences of two loads cannot be compared.
func withoutSequence[T any](o *Object[T]) *Object[T] {
	earlier := *o
	earlier.Sequence, earlier.TombstoneSequence = 0, 0
	return &earlier
}

func (t *Lister[T]) expireTombstones(now time.Time) {
	t.shown.gone.removeExpired(now)
	maps.DeleteFunc(t.shown.denied, func(_ event.Key, o *Object[T]) bool { return isExpired(o.Change, now) })
}

func (t *Lister[T]) appendKeys(keys []event.Key) []event.Key {
	keys = slices.AppendSeq(keys, maps.Keys(t.shown.live.objects))
	return slices.AppendSeq(keys, maps.Keys(t.shown.gone.named))
}

func (t *Lister[T]) appendPublishedSince(keys []event.Key, since time.Time) []event.Key {
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

func (t *Lister[T]) countInSnapshot(of snapshotScope) (n int64) {
	if of.cluster == "" && !of.kind.Target {
		return int64(len(t.shown.live.objects))
	}
	for k := range t.shown.live.objects {
		if of.containsKey(k) {
			n++
		}
	}
	return n
}

func (t *Lister[T]) dropInSnapshot(of snapshotScope) {
	for k := range t.writing.live.objects {
		if of.containsKey(k) {
			t.writing.live.removeKey(k)
		}
	}
}

func (t *Lister[T]) hasLive(k event.Key) bool { return t.shown.live.objects[k] != nil }

func (t *Lister[T]) contentDigest() uint64 { return t.shown.live.digest }
