package view

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// shelf holds objects by some key, and by what indexes find in them.
type shelf[K comparable, T any] struct {
	objects map[K]*Object[T]
	extract map[string]func(*T) []string
	index   map[indexKey]map[*Object[T]]struct{}
}

type indexKey struct{ index, value string }

func newShelf[K comparable, T any](extract map[string]func(*T) []string) *shelf[K, T] {
	return &shelf[K, T]{objects: map[K]*Object[T]{}, extract: extract, index: map[indexKey]map[*Object[T]]struct{}{}}
}

// put stores o in the place of what has its key.
func (s *shelf[K, T]) put(k K, o *Object[T]) {
	s.remove(k)
	s.objects[k] = o
	for ik := range s.values(o) {
		if s.index[ik] == nil {
			s.index[ik] = map[*Object[T]]struct{}{}
		}
		s.index[ik][o] = struct{}{}
	}
}

func (s *shelf[K, T]) remove(k K) {
	o := s.objects[k]
	if o == nil {
		return
	}
	delete(s.objects, k)
	for ik := range s.values(o) {
		delete(s.index[ik], o)
		if len(s.index[ik]) == 0 {
			delete(s.index, ik)
		}
	}
}

// values yields what the indexes find in o.
func (s *shelf[K, T]) values(o *Object[T]) iter.Seq[indexKey] {
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

func (s *shelf[K, T]) by(ik indexKey) []Object[T] { return sorted(maps.Keys(s.index[ik])) }

func sorted[T any](objects iter.Seq[*Object[T]]) []Object[T] {
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
