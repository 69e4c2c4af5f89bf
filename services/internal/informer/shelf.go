package informer

import (
	"cmp"
	"hash/fnv"
	"iter"
	"maps"
	"slices"

	"github.com/entail-dev/entail/services/internal/event"
)

// indexer holds objects by key, with secondary indexes.
type indexer[K comparable, T any] struct {
	objects map[K]*Object[T]
	extract map[string]func(*T) []string
	// alike reports whether two states of an object count as equal. edited is called when a state replaces one that is
	// not equal. changed counts all changes except between equal states.
	alike   func(was, is *T) bool
	edited  func(k K, was, is *Object[T])
	changed uint64
	// digest is a hash of all states in the indexer. It does not depend on the order of the changes.
	digest uint64
	index  map[indexKey]map[*Object[T]]struct{}
}

type indexKey struct{ index, value string }

func newIndexer[K comparable, T any](extract map[string]func(*T) []string) *indexer[K, T] {
	return &indexer[K, T]{objects: map[K]*Object[T]{}, extract: extract, index: map[indexKey]map[*Object[T]]struct{}{}}
}

// putObject stores o under k and replaces the previous object of that key.
func (s *indexer[K, T]) putObject(k K, o *Object[T]) {
	changed := s.changed
	switch was := s.objects[k]; {
	case was == nil:
		changed++
	case !s.isUnchanged(was, o):
		if changed++; s.edited != nil {
			s.edited(k, was, o)
		}
	}
	s.removeKey(k)
	s.objects[k], s.changed = o, changed
	s.digest ^= digestState(o.Change)
	for ik := range s.indexEntries(o) {
		if s.index[ik] == nil {
			s.index[ik] = map[*Object[T]]struct{}{}
		}
		s.index[ik][o] = struct{}{}
	}
}

func (s *indexer[K, T]) removeKey(k K) {
	o := s.objects[k]
	if o == nil {
		return
	}
	s.changed++
	delete(s.objects, k)
	s.digest ^= digestState(o.Change)
	for ik := range s.indexEntries(o) {
		delete(s.index[ik], o)
		if len(s.index[ik]) == 0 {
			delete(s.index, ik)
		}
	}
}

// digestState returns a hash of an object's state. All processes compute the same hash.
func digestState(c event.Change) uint64 {
	h := fnv.New64a()
	for _, part := range []string{c.UID, c.Epoch, c.ResourceVersion} {
		_, _ = h.Write([]byte(part)) // A hash never returns an error.
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// isUnchanged reports whether was and is belong to the same object and alike treats them as equal.
func (s *indexer[K, T]) isUnchanged(was, is *Object[T]) bool {
	return s.alike != nil && was.UID == is.UID && was.Epoch == is.Epoch && was.Value != nil && is.Value != nil && s.alike(was.Value, is.Value)
}

// indexEntries yields the index entries of o.
func (s *indexer[K, T]) indexEntries(o *Object[T]) iter.Seq[indexKey] {
	return func(yield func(indexKey) bool) {
		if o.Value == nil {
			return
		}
		for name, extract := range s.extract {
			for _, value := range extract(o.Value) {
				if value != "" && !yield(indexKey{name, value}) {
					return
				}
			}
		}
	}
}

func (s *indexer[K, T]) objectsByIndex(ik indexKey) []Object[T] {
	return sortObjects(maps.Keys(s.index[ik]))
}

func sortObjects[T any](objects iter.Seq[*Object[T]]) []Object[T] {
	all := []Object[T]{}
	for o := range objects {
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b Object[T]) int {
		return cmp.Or(cmp.Compare(a.Key.Cluster, b.Key.Cluster), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name),
			cmp.Compare(a.UID, b.UID))
	})
	return all
}
