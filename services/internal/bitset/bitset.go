// Package bitset holds sets of small numbers, one bit for each.
package bitset

import (
	"iter"
	"math/bits"
)

const wordSize = 64

// Set is a set of numbers. Nil is the empty set.
type Set []uint64

// New returns an empty set with room for the numbers below n.
func New(n int) Set { return make(Set, (n+wordSize-1)/wordSize) }

// Has reports whether the set has a number.
func (s Set) Has(n int) bool { return n/wordSize < len(s) && s[n/wordSize]&(1<<(n%wordSize)) != 0 }

// Add adds a number, for which the set must have room.
func (s Set) Add(n int) { s[n/wordSize] |= 1 << (n % wordSize) }

// AddAll adds the numbers of another set, for which the set must have room.
func (s Set) AddAll(other Set) {
	for i, word := range other {
		s[i] |= word
	}
}

// Count returns the size of the set.
func (s Set) Count() int { return s.CountCommon(s) }

// CountCommon returns the size of the intersection with another set.
func (s Set) CountCommon(other Set) (n int) {
	for i, word := range s[:min(len(s), len(other))] {
		n += bits.OnesCount64(word & other[i])
	}
	return n
}

// ContainsAnyExcept reports whether the set has a number that is in with and not in without.
func (s Set) ContainsAnyExcept(with, without Set) bool {
	for i, word := range s[:min(len(s), len(with))] {
		if i < len(without) {
			word &^= without[i]
		}
		if word&with[i] != 0 {
			return true
		}
	}
	return false
}

// All yields the numbers in order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(i*wordSize + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
