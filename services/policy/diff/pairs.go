package diff

import (
	"iter"
	"strings"
)

// pairByName yields the items of two sorted lists by name: items of the same name together, others with nil.
func pairByName[T any](before, after []*T, name func(*T) string) iter.Seq2[*T, *T] {
	return func(yield func(*T, *T) bool) {
		o, n := before, after
		for len(o) > 0 || len(n) > 0 {
			var was, is *T
			order := compareFirstNames(o, n, name)
			if order <= 0 {
				was, o = o[0], o[1:]
			}
			if order >= 0 {
				is, n = n[0], n[1:]
			}
			if !yield(was, is) {
				return
			}
		}
	}
}

// compareFirstNames compares the first items of two lists. One of the lists may be empty.
func compareFirstNames[T any](o, n []*T, name func(*T) string) int {
	switch {
	case len(n) == 0:
		return -1
	case len(o) == 0:
		return 1
	default:
		return strings.Compare(name(o[0]), name(n[0]))
	}
}
