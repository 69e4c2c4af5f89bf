package closure

import (
	"iter"
	mathbits "math/bits"
)

const wordSize = 64

// bits is a set of node numbers. Nil is the empty set.
type bits []uint64

func wordsFor(n int) int { return (n + wordSize - 1) / wordSize }

func (b bits) hasBit(i int32) bool { return b != nil && b[i/wordSize]&(1<<(i%wordSize)) != 0 }

func (b bits) setBit(i int32) { b[i/wordSize] |= 1 << (i % wordSize) }

func (b bits) addAll(other bits) {
	for i, word := range other {
		b[i] |= word
	}
}

func (b bits) countBits() int {
	n := 0
	for _, word := range b {
		n += mathbits.OnesCount64(word)
	}
	return n
}

func (b bits) allBits() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(int32(i*wordSize + mathbits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
