package closure

import (
	"iter"
	mathbits "math/bits"
)

const wordSize = 64

// bitSet is a set of node numbers. Nil is the empty set.
type bitSet []uint64

func wordCount(n int) int { return (n + wordSize - 1) / wordSize }

func (b bitSet) hasBit(i int32) bool { return b != nil && b[i/wordSize]&(1<<(i%wordSize)) != 0 }

func (b bitSet) setBit(i int32) { b[i/wordSize] |= 1 << (i % wordSize) }

func (b bitSet) unionWith(other bitSet) {
	for i, word := range other {
		b[i] |= word
	}
}

func (b bitSet) countBits() int {
	n := 0
	for _, word := range b {
		n += mathbits.OnesCount64(word)
	}
	return n
}

func (b bitSet) allBits() iter.Seq[int32] {
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
