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
	// Value is nil only for a deletion whose last state is unknown, or for an undecodable object (see
	// [Config.KeepUndecodable]).
	Value *T
}

// Lister holds the objects of one kind.
type Lister[T any] struct {
	mu      *sync.RWMutex
	extract map[string]func(*T) []string
	alike   func(was, is *T) bool
	edited  func(k event.Key, was, is *Object[T])
	// Readers use shown, and changes go to writing. Both are the same object except during a load.
	shown, writing *kindContents[T]
}

// kindTable is the common interface of [Lister] and [Forwarder] for the informer.
type kindTable interface {
	objectCounter
	isNewChange(c event.Change) bool
	// decodeChange decodes c without the lock. The caller runs commit with the lock. If blank is true, commit stores
	// an undecodable object without a value.
	decodeChange(c event.Change, blank bool) (commit func() (taken bool), err error)
	// overrideStoredState removes the state held if the API server's state contradicts it. It reports whether the table
	// now accepts the API server's state.
	overrideStoredState(held, is event.Change) bool
	// beginLoad starts a load into an empty table. Readers see the new content after finishLoad.
	beginLoad()
	finishLoad()
	expireTombstones(now time.Time)
	// dropInSnapshot removes the objects of a kind without making tombstones.
	dropInSnapshot(of snapshotScope)
}

// objectCounter lists and counts the objects of one kind.
type objectCounter interface {
	appendKeys(keys []event.Key) []event.Key
	appendPublishedSince(keys []event.Key, since time.Time) []event.Key
	// countInSnapshot returns the number of live objects of a kind in a cluster. An empty cluster means all clusters.
	countInSnapshot(of snapshotScope) int64
	hasLive(k event.Key) bool
	// contentDigest returns a hash of the states of all live objects.
	contentDigest() uint64
}

// RegisterLister adds a lister of one kind to the informer. Each index function returns the values under which
// [Lister.ListByIndex] finds a live object and [Lister.TombstonesByIndex] a deleted one. Empty values are ignored.
// Call RegisterLister before [Informer.Run].
func RegisterLister[T any](v *Informer, kind kinds.Kind, indexes map[string]func(*T) []string) *Lister[T] {
	t := &Lister[T]{mu: &v.mu, extract: indexes}
	t.beginLoad()
	t.shown = t.writing
	v.tables[kind.GroupResource], v.named[kind.GroupResource] = t, kind.ReferencedOnly
	return t
}

// SetEquivalence sets which states of an object [Lister.ChangeCount] treats as equal. edited is called when a state
// replaces one that is not equal, before the callbacks of [Informer.OnChange]. edited must be quick and must not call
// the informer. Call SetEquivalence before [Informer.Run].
func (t *Lister[T]) SetEquivalence(equal func(was, is *T) bool, onEdit func(k event.Key, was, is *Object[T])) {
	t.alike, t.edited = equal, onEdit
	t.writing.live.alike, t.writing.live.edited = equal, onEdit
}

// ChangeCount returns a counter that grows whenever live objects change. Changes between states that count as equal do
// not increase it. A caller may cache what it computed from the objects until the counter changes.
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

// Tombstone returns the last object that had a name, if no live object has it. A deletion is known only as long as the
// stream keeps its tombstone.
func (t *Lister[T]) Tombstone(k event.Key) (Object[T], bool) {
	o, live := t.GetOrTombstone(k)
	if live {
		return Object[T]{}, false
	}
	return o, o.UID != ""
}

// GetOrTombstone returns the newest known state of an object and reports whether the object is live. The UID is empty
// if no state is known.
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

// Tombstones lists the last states of all deleted objects with this name, the newest first. An entry may have the UID
// of the live object: it is from before the cluster's history was rewound.
func (t *Lister[T]) Tombstones(k event.Key) []Object[T] { return t.TombstonesSince(k, event.Change{}) }

// TombstonesSince lists the entries of [Lister.Tombstones] that are newer than the given one.
func (t *Lister[T]) TombstonesSince(k event.Key, since event.Change) []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []Object[T]
	for gone := range t.shown.gone.tombstonesOf(k) {
		if since.UID != "" && !gone.IsNewerThan(since) {
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

// ListByIndex lists the live objects that have a value in an index, ordered by key.
func (t *Lister[T]) ListByIndex(index, value string) []Object[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.shown.live.objectsByIndex(indexKey{index, value})
}

// TombstonesByIndex lists the deleted objects whose last state has a value in an index, ordered by key. Live objects
// may have the same names.
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

// Keys lists the keys of the live objects.
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

// finishLoad makes the loaded content visible. It keeps the states that this process wrote itself and that the stream
// does not hold yet. It also keeps tombstones that the stream may not bring again.
//
// Objects of another epoch become tombstones. All other states of the previous load are removed, because they may come
// from another stream.
func (t *Lister[T]) finishLoad() {
	before, loaded := t.shown, t.writing
	for k, is := range loaded.live.objects {
		was := before.live.objects[k]
		switch {
		case was == nil:
		case was.Epoch == is.Epoch && was.Sequence == 0 && was.IsNewerThan(is.Change):
			t.putWithoutFallback(was)
		case was.UID != is.UID || was.Epoch != is.Epoch:
			loaded.gone.addTombstoneForReplaced(withoutSequence(was), is.Change)
		}
	}
	for k, denied := range before.denied {
		if is := loaded.live.objects[k]; is != nil && is.Epoch != denied.Epoch {
			loaded.gone.addTombstoneForReplaced(withoutSequence(denied), is.Change)
		} else {
			loaded.denied[k] = withoutSequence(denied)
		}
	}
	for at, gone := range before.gone.shelf.objects {
		is := loaded.live.objects[at.Key]
		written := gone.Sequence == 0 && gone.TombstoneSequence == 0
		switch gone = withoutSequence(gone); {
		case is != nil && is.UID == gone.UID && is.Epoch != gone.Epoch:
			loaded.gone.addTombstoneForReplaced(gone, gone.Change)
		// This tombstone was forged, or comes from a stream that was lost.
		case is != nil && !written && gone.IsNewerThan(is.Change):
		case is == nil || is.UID != gone.UID || written:
			t.putObject(gone)
		}
	}
	loaded.live.changed += before.live.changed + 1
	t.shown = loaded
}

// withoutSequence returns a copy of an object without its sequences. Sequences of two loads cannot be compared.
func withoutSequence[T any](o *Object[T]) *Object[T] {
	earlier := *o
	earlier.Sequence, earlier.TombstoneSequence = 0, 0
	return &earlier
}

func (t *Lister[T]) expireTombstones(now time.Time) {
	t.shown.gone.removeExpired(now)
	maps.DeleteFunc(t.shown.denied, func(_ event.Key, o *Object[T]) bool { return isExpiredTombstone(o.Change, now) })
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
