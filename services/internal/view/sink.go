package view

import (
	"maps"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Sink passes each state of the objects of a kind to a callback, and stores no object. It stores only the version of
// each object, so that it ignores older states. It serves kinds with more objects than memory has room for in a
// [Table]. It decides as a Table does, with one exception: if a reload brings an older state than was known, the object
// counts as missing until the stream brings the known state or a newer one. It cannot answer when an object changed.
type Sink[T any] struct {
	mu   *sync.RWMutex
	kind event.GroupResource
	take func(c event.Change, value *T)
	live map[string]map[title]state // By cluster.
	gone map[event.Key][]memory
	// loads counts how often the stream was read from its start.
	loads uint32
	sum   uint64
}

// title is the name of an object within its kind and cluster. It is smaller than a key, because there is one per
// object.
type title struct{ namespace, name string }

func titleOf(k event.Key) title { return title{k.Namespace, k.Name} }

// state is the known version of a live object.
type state struct {
	uid, version string
	epoch        unique.Handle[string]
	// sequence is the position of the change in the stream that the load read.
	sequence uint64
	// load is the load that brought this state, or found it again.
	load uint32
	// blank means that this load brought an older state, so the callback does not have the known one.
	blank bool
}

// memory is a tombstone, with the load that brought it.
type memory struct {
	event.Change

	load uint32
}

// in returns the tombstone as a change, without the sequence of an earlier load.
func (m memory) in(load uint32) event.Change {
	if m.load != load {
		m.Sequence = 0
	}
	return m.Change
}

// RegisterSink declares a sink of one kind. take receives the new state of an object with its change, and nil if the
// object is gone. What it received before is void when the stream is read again (see [View.OnBegin]). take must be
// quick, and must not call the view. Call RegisterSink before [View.Run].
func RegisterSink[T any](v *View, kind kinds.Kind, take func(c event.Change, value *T)) *Sink[T] {
	s := &Sink[T]{mu: &v.mu, kind: kind.GroupResource, take: take, live: map[string]map[title]state{}, gone: map[event.Key][]memory{}}
	v.tables[kind.GroupResource] = s
	return s
}

// Get returns the key, UID, version and epoch of a live object, without its content.
func (s *Sink[T]) Get(k event.Key) (c event.Change, live bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	held, live := s.find(k)
	if !live {
		return c, false
	}
	return held.change(k), true
}

// find returns the known version of a live object. It returns no sequence of an earlier load.
func (s *Sink[T]) find(k event.Key) (held state, live bool) {
	held, live = s.live[k.Cluster][titleOf(k)]
	return held, live
}

func (s *Sink[T]) hold(k event.Key, held state) {
	if s.live[k.Cluster] == nil {
		s.live[k.Cluster] = map[title]state{}
	}
	s.live[k.Cluster][titleOf(k)] = held
}

func (s *Sink[T]) key(cluster string, n title) event.Key {
	return event.Key{Cluster: cluster, GroupResource: s.kind, Namespace: n.namespace, Name: n.name}
}

func (h state) change(k event.Key) event.Change {
	return event.Change{Key: k, UID: h.uid, ResourceVersion: h.version, Epoch: h.epoch.Value(), Sequence: h.sequence}
}

func (h state) newerThan(c event.Change) bool { return h.change(c.Key).NewerThan(c) }

// forget reports whether something is known from an earlier load only, and of another epoch than c.
func (s *Sink[T]) forget(load uint32, epoch string, c event.Change) bool {
	return load != s.loads && epoch != c.Epoch
}

// newer reports whether c is newer than what is known, as [Table] does. After a reload it also accepts a known state
// that the stream brings again.
func (s *Sink[T]) newer(c event.Change) bool {
	held, live := s.find(c.Key)
	if c.Deleted {
		i := s.grave(c.Key, c.UID)
		return (i < 0 || c.Replaces(s.gone[c.Key][i].in(s.loads))) &&
			(!live || held.uid != c.UID || held.epoch.Value() != c.Epoch || held.load != s.loads || c.Replaces(held.change(c.Key)))
	}
	if live && s.outlives(held, c) { // A state that is found again is accepted, unless a tombstone of this load is newer.
		return !slices.ContainsFunc(s.gone[c.Key], func(m memory) bool { return m.load == s.loads && !c.Replaces(m.Change) })
	}
	another := live && s.forget(held.load, held.epoch.Value(), c)
	for _, gone := range s.gone[c.Key] {
		if !s.forget(gone.load, gone.Epoch, c) && (!another || gone.UID != held.uid) && !c.Replaces(gone.in(s.loads)) {
			return false
		}
	}
	return !live || held.load != s.loads || c.Replaces(held.change(c.Key)) || held.blank && !held.newerThan(c)
}

// outlives reports whether a state of an earlier load is newer than c.
func (s *Sink[T]) outlives(held state, c event.Change) bool {
	return held.load != s.loads && held.epoch.Value() == c.Epoch && held.newerThan(c)
}

func (s *Sink[T]) grave(k event.Key, uid string) int {
	return slices.IndexFunc(s.gone[k], func(m memory) bool { return m.UID == uid })
}

func (s *Sink[T]) decode(c event.Change, blank bool) (func() bool, error) {
	var value *T
	var err error
	if len(c.Object) > 0 && !c.Deleted {
		value = new(T)
		if err = event.Decode(c.Object, value); err != nil {
			value = nil
		}
	}
	c.Object = nil
	if err != nil && !blank {
		return nil, err
	}
	return func() bool { return s.put(c, value) }, err
}

// put passes the state in c on, unless a state that is as new came while it was decoded.
func (s *Sink[T]) put(c event.Change, value *T) (taken bool) {
	if !s.newer(c) {
		return false
	}
	was, live := s.find(c.Key)
	switch {
	case c.Deleted:
		s.delete(c, was, live)
	case live && s.outlives(was, c):
		was.load, was.blank, was.sequence = s.loads, true, 0
		s.hold(c.Key, was)
		if was.uid != c.UID { // It went before what outlives it came.
			c.Deleted = true
			s.remember(c)
		}
		return false
	default:
		s.replace(c, was, live)
		s.take(c, value)
	}
	return true
}

func (s *Sink[T]) delete(c event.Change, was state, live bool) {
	if live && (was.uid == c.UID || was.epoch.Value() == c.Epoch) && c.Replaces(was.change(c.Key)) {
		s.drop(c.Key, was)
		if was.uid != c.UID { // It went before the one that is deleted came.
			s.displace(was, c)
		}
		s.take(c, nil)
	}
	s.bury(c)
}

// replace makes c the live object of its name, and buries the one that had the name.
func (s *Sink[T]) replace(c event.Change, was state, live bool) {
	if live {
		s.drop(c.Key, was)
	}
	if live && (was.uid != c.UID || was.epoch.Value() != c.Epoch) {
		s.displace(was, c)
	}
	if i := s.grave(c.Key, c.UID); i >= 0 && s.gone[c.Key][i].Epoch == c.Epoch {
		s.unbury(c.Key, i)
	}
	s.hold(c.Key, state{uid: c.UID, version: c.ResourceVersion, epoch: unique.Make(c.Epoch), sequence: c.Sequence, load: s.loads})
	s.sum ^= digest(c)
}

func (s *Sink[T]) drop(k event.Key, was state) {
	delete(s.live[k.Cluster], titleOf(k))
	s.sum ^= digest(was.change(k))
}

// displace buries an object that another object, or another epoch, replaces by a change.
func (s *Sink[T]) displace(was state, by event.Change) {
	gone := was.change(by.Key)
	gone.Deleted, gone.ObservedAt, gone.PublishedAt = true, by.ObservedAt, by.PublishedAt
	s.remember(gone)
}

// remember buries an object, unless a newer tombstone of it is known.
func (s *Sink[T]) remember(gone event.Change) {
	if i := s.grave(gone.Key, gone.UID); i < 0 || gone.Replaces(s.gone[gone.Key][i].in(s.loads)) {
		s.bury(gone)
	}
}

func (s *Sink[T]) bury(c event.Change) {
	if i := s.grave(c.Key, c.UID); i >= 0 {
		s.unbury(c.Key, i)
	}
	s.gone[c.Key] = append(s.gone[c.Key], memory{c, s.loads})
}

func (s *Sink[T]) unbury(k event.Key, i int) {
	if s.gone[k] = slices.Delete(s.gone[k], i, i+1); len(s.gone[k]) == 0 {
		delete(s.gone, k)
	}
}

// believe accepts newer states only. A caller of [View.Correct] that must contradict the stream needs a [Table].
func (s *Sink[T]) believe(held, is event.Change) bool { return is.NewerThan(held) }

func (s *Sink[T]) begin() { s.loads++ }

// finish drops live objects that the load did not bring.
func (s *Sink[T]) finish() {
	for cluster, all := range s.live {
		for n, held := range all {
			if held.load != s.loads {
				s.drop(s.key(cluster, n), held)
			}
		}
	}
	for _, all := range s.gone {
		for i := range all {
			all[i] = memory{all[i].in(s.loads), s.loads}
		}
	}
}

func (s *Sink[T]) expire(now time.Time) {
	for k, all := range s.gone {
		if s.gone[k] = slices.DeleteFunc(all, func(m memory) bool { return expired(m.Change, now) }); len(s.gone[k]) == 0 {
			delete(s.gone, k)
		}
	}
}

func (s *Sink[T]) appendKeys(keys []event.Key) []event.Key {
	for cluster, all := range s.live {
		for n := range all {
			keys = append(keys, s.key(cluster, n))
		}
	}
	return slices.AppendSeq(keys, maps.Keys(s.gone))
}

func (s *Sink[T]) appendPublished(keys []event.Key, _ time.Time) []event.Key { return keys }

func (s *Sink[T]) size(of snapshot) (n int64) {
	for cluster, all := range s.live {
		if of.cluster == "" || of.cluster == cluster {
			n += int64(len(all))
		}
	}
	return n
}

// void does nothing: no kind of targets has a sink.
func (s *Sink[T]) void(snapshot) {}

func (s *Sink[T]) lives(k event.Key) bool {
	_, live := s.find(k)
	return live
}

func (s *Sink[T]) digest() uint64 { return s.sum }
