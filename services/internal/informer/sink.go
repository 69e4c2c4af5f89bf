package informer

import (
	"maps"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Forwarder passes each new state of the objects of one kind to a callback. It stores only the version of each object,
// so that it can ignore older states. Use it for kinds with too many objects for a [Lister].
//
// A Forwarder accepts the same changes as a Lister, with one exception. If a reload brings an older state than the
// known one, the object counts as missing until the stream brings a newer state. A Forwarder cannot list the keys that
// changed since a time.
type Forwarder[T any] struct {
	mu       *sync.RWMutex
	kind     event.GroupResource
	onChange func(c event.Change, value *T)
	live     map[string]map[namespacedName]knownVersion // versions of live objects by cluster
	gone     map[event.Key][]loadedTombstone
	// loads counts how often the stream was read from its start.
	loads uint32
	sum   uint64
}

// namespacedName identifies an object within its kind and cluster. It needs less memory than an [event.Key].
type namespacedName struct{ namespace, name string }

func namespacedNameOf(k event.Key) namespacedName { return namespacedName{k.Namespace, k.Name} }

// knownVersion is the newest version that the forwarder has received of a live object.
type knownVersion struct {
	uid, version string
	epoch        unique.Handle[string]
	// sequence is the position of the change in the stream. Sequences of different loads cannot be compared.
	sequence uint64
	// load is the number of the last load of the stream that contained this state.
	load uint32
	// blank means that the current load has contained only an older state. So the callback has not received the known
	// state since the load began.
	blank bool
}

// loadedTombstone is a tombstone and the number of the load that contained it.
type loadedTombstone struct {
	event.Change

	load uint32
}

// asOfLoad returns the tombstone as a change. It clears the sequences if the tombstone comes from another load.
func (m loadedTombstone) asOfLoad(load uint32) event.Change {
	if m.load != load {
		m.Sequence, m.TombstoneSequence = 0, 0
	}
	return m.Change
}

// RegisterForwarder adds a forwarder of one kind to the informer. onChange receives each change with the new state of
// the object, or with nil if the object is deleted. All states that it received become invalid when the stream is read
// again (see [Informer.OnReset]).
//
// onChange must be quick and must not call the informer. Call RegisterForwarder before [Informer.Run].
func RegisterForwarder[T any](v *Informer, kind kinds.Kind, onChange func(c event.Change, value *T)) *Forwarder[T] {
	s := &Forwarder[T]{
		mu: &v.mu, kind: kind.GroupResource, onChange: onChange, live: map[string]map[namespacedName]knownVersion{},
		gone: map[event.Key][]loadedTombstone{},
	}
	v.tables[kind.GroupResource] = s
	return s
}

// Get returns the key, UID, version and epoch of a live object, without its content.
func (s *Forwarder[T]) Get(k event.Key) (c event.Change, live bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	held, live := s.findVersion(k)
	if !live {
		return c, false
	}
	return held.toChange(k), true
}

// findVersion returns the known version of a live object.
func (s *Forwarder[T]) findVersion(k event.Key) (held knownVersion, live bool) {
	held, live = s.live[k.Cluster][namespacedNameOf(k)]
	return held, live
}

func (s *Forwarder[T]) putVersion(k event.Key, held knownVersion) {
	if s.live[k.Cluster] == nil {
		s.live[k.Cluster] = map[namespacedName]knownVersion{}
	}
	s.live[k.Cluster][namespacedNameOf(k)] = held
}

func (s *Forwarder[T]) keyOf(cluster string, n namespacedName) event.Key {
	return event.Key{Cluster: cluster, GroupResource: s.kind, Namespace: n.namespace, Name: n.name}
}

func (h knownVersion) toChange(k event.Key) event.Change {
	return event.Change{Key: k, UID: h.uid, ResourceVersion: h.version, Epoch: h.epoch.Value(), Sequence: h.sequence}
}

func (h knownVersion) isNewerThan(c event.Change) bool { return h.toChange(c.Key).IsNewerThan(c) }

// isForgettable reports whether the forwarder need not keep an entry: it comes from an earlier load, and its epoch is
// not that of c.
func (s *Forwarder[T]) isForgettable(load uint32, epoch string, c event.Change) bool {
	return load != s.loads && epoch != c.Epoch
}

// isNewChange reports whether c is newer than the known state, by the rules of [Lister]. After a reload it also
// accepts a known state that the stream brings again.
func (s *Forwarder[T]) isNewChange(c event.Change) bool {
	held, live := s.findVersion(c.Key)
	if c.Deleted {
		i := s.indexOfTombstone(c.Key, c.UID)
		return (i < 0 || c.Replaces(s.gone[c.Key][i].asOfLoad(s.loads))) &&
			(!live || held.uid != c.UID || held.epoch.Value() != c.Epoch || held.load != s.loads || c.Replaces(held.toChange(c.Key)))
	}
	// A known state that the stream brings again is accepted, unless this load brought a newer tombstone.
	if live && s.isNewerFromEarlierLoad(held, c) {
		return !slices.ContainsFunc(s.gone[c.Key], func(m loadedTombstone) bool { return m.load == s.loads && !c.Replaces(m.Change) })
	}
	another := live && s.isForgettable(held.load, held.epoch.Value(), c)
	for _, gone := range s.gone[c.Key] {
		if !s.isForgettable(gone.load, gone.Epoch, c) && (!another || gone.UID != held.uid) && !c.Replaces(gone.asOfLoad(s.loads)) {
			return false
		}
	}
	return !live || held.load != s.loads || c.Replaces(held.toChange(c.Key)) || held.blank && !held.isNewerThan(c)
}

// isNewerFromEarlierLoad reports whether the known state comes from an earlier load and is newer than c.
func (s *Forwarder[T]) isNewerFromEarlierLoad(held knownVersion, c event.Change) bool {
	return held.load != s.loads && held.epoch.Value() == c.Epoch && held.isNewerThan(c)
}

func (s *Forwarder[T]) indexOfTombstone(k event.Key, uid string) int {
	return slices.IndexFunc(s.gone[k], func(m loadedTombstone) bool { return m.UID == uid })
}

func (s *Forwarder[T]) decodeChange(c event.Change, blank bool) (func() bool, error) {
	var value *T
	var err error
	if len(c.Object) > 0 && !c.Deleted {
		value = new(T)
		if err = event.DecodeObject(c.Object, value); err != nil {
			value = nil
		}
	}
	c.Object = nil
	if err != nil && !blank {
		return nil, err
	}
	return func() bool { return s.forwardState(c, value) }, err
}

// forwardState passes c to the callback, unless the same or a newer state arrived while c was decoded.
func (s *Forwarder[T]) forwardState(c event.Change, value *T) (taken bool) {
	if !s.isNewChange(c) {
		return false
	}
	was, live := s.findVersion(c.Key)
	switch {
	case c.Deleted:
		s.applyDeletion(c, was, live)
	case live && s.isNewerFromEarlierLoad(was, c):
		was.load, was.blank, was.sequence = s.loads, true, 0
		s.putVersion(c.Key, was)
		// If the UIDs differ, the older object was deleted before the known object was created.
		if was.uid != c.UID {
			c.Deleted = true
			s.addNewerTombstone(c)
		}
		return false
	default:
		s.replaceLive(c, was, live)
		s.onChange(c, value)
	}
	return true
}

func (s *Forwarder[T]) applyDeletion(c event.Change, was knownVersion, live bool) {
	if live && (was.uid == c.UID || was.epoch.Value() == c.Epoch) && c.Replaces(was.toChange(c.Key)) {
		s.removeVersion(c.Key, was)
		// If the UIDs differ, the known object was deleted before the newly deleted object was created.
		if was.uid != c.UID {
			s.addTombstoneForReplaced(was, c)
		}
		s.onChange(c, nil)
	}
	s.putTombstone(c)
}

// replaceLive makes c the live object of its name. It turns a displaced object into a tombstone.
func (s *Forwarder[T]) replaceLive(c event.Change, was knownVersion, live bool) {
	if live {
		s.removeVersion(c.Key, was)
	}
	if live && (was.uid != c.UID || was.epoch.Value() != c.Epoch) {
		s.addTombstoneForReplaced(was, c)
	}
	if i := s.indexOfTombstone(c.Key, c.UID); i >= 0 && s.gone[c.Key][i].Epoch == c.Epoch {
		s.removeTombstone(c.Key, i)
	}
	s.putVersion(c.Key, knownVersion{uid: c.UID, version: c.ResourceVersion, epoch: unique.Make(c.Epoch), sequence: c.Sequence, load: s.loads})
	s.sum ^= digestState(c)
}

func (s *Forwarder[T]) removeVersion(k event.Key, was knownVersion) {
	delete(s.live[k.Cluster], namespacedNameOf(k))
	s.sum ^= digestState(was.toChange(k))
}

// addTombstoneForReplaced turns an object into a tombstone. The change by replaced it: by is of another object, or of a
// new epoch.
func (s *Forwarder[T]) addTombstoneForReplaced(was knownVersion, by event.Change) {
	gone := was.toChange(by.Key)
	gone.Deleted, gone.ObservedAt, gone.PublishedAt = true, by.ObservedAt, by.PublishedAt
	s.addNewerTombstone(gone)
}

// addNewerTombstone stores a tombstone unless the forwarder holds a newer one of the same object.
func (s *Forwarder[T]) addNewerTombstone(gone event.Change) {
	if i := s.indexOfTombstone(gone.Key, gone.UID); i < 0 || gone.Replaces(s.gone[gone.Key][i].asOfLoad(s.loads)) {
		s.putTombstone(gone)
	}
}

func (s *Forwarder[T]) putTombstone(c event.Change) {
	if i := s.indexOfTombstone(c.Key, c.UID); i >= 0 {
		s.removeTombstone(c.Key, i)
	}
	s.gone[c.Key] = append(s.gone[c.Key], loadedTombstone{c, s.loads})
}

func (s *Forwarder[T]) removeTombstone(k event.Key, i int) {
	if s.gone[k] = slices.Delete(s.gone[k], i, i+1); len(s.gone[k]) == 0 {
		delete(s.gone, k)
	}
}

// overrideStoredState accepts only newer states. Use a [Lister] if [Informer.ApplyAuthoritative] must be able to
// override the stream.
func (s *Forwarder[T]) overrideStoredState(held, is event.Change) bool { return is.IsNewerThan(held) }

func (s *Forwarder[T]) beginLoad() { s.loads++ }

// finishLoad removes live objects that the load did not contain.
func (s *Forwarder[T]) finishLoad() {
	for cluster, all := range s.live {
		for n, held := range all {
			if held.load != s.loads {
				s.removeVersion(s.keyOf(cluster, n), held)
			}
		}
	}
	for _, all := range s.gone {
		for i := range all {
			all[i] = loadedTombstone{all[i].asOfLoad(s.loads), s.loads}
		}
	}
}

func (s *Forwarder[T]) expireTombstones(now time.Time) {
	for k, all := range s.gone {
		if s.gone[k] = slices.DeleteFunc(all, func(m loadedTombstone) bool { return isExpiredTombstone(m.Change, now) }); len(s.gone[k]) == 0 {
			delete(s.gone, k)
		}
	}
}

func (s *Forwarder[T]) appendKeys(keys []event.Key) []event.Key {
	for cluster, all := range s.live {
		for n := range all {
			keys = append(keys, s.keyOf(cluster, n))
		}
	}
	return slices.AppendSeq(keys, maps.Keys(s.gone))
}

func (s *Forwarder[T]) appendPublishedSince(keys []event.Key, _ time.Time) []event.Key { return keys }

func (s *Forwarder[T]) countInSnapshot(of snapshotScope) (n int64) {
	for cluster, all := range s.live {
		if of.cluster == "" || of.cluster == cluster {
			n += int64(len(all))
		}
	}
	return n
}

// dropInSnapshot does nothing, because target kinds use a [Lister].
func (s *Forwarder[T]) dropInSnapshot(snapshotScope) {}

func (s *Forwarder[T]) hasLive(k event.Key) bool {
	_, live := s.findVersion(k)
	return live
}

func (s *Forwarder[T]) contentDigest() uint64 { return s.sum }
