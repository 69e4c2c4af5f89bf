package check

// bitSet is a set of small numbers below a fixed size.
type bitSet []uint64

const wordBits = 64

func newBitSet(size int) bitSet { return make(bitSet, (size+wordBits-1)/wordBits) }

func (b bitSet) has(i int) bool { return b != nil && b[i/wordBits]&(1<<(i%wordBits)) != 0 }

func (b bitSet) add(i int) { b[i/wordBits] |= 1 << (i % wordBits) }

// intersectWith removes the numbers that o lacks; a nil set is empty.
func (b bitSet) intersectWith(o bitSet) {
	if o == nil {
		clear(b)
		return
	}
	for i := range b {
		b[i] &= o[i]
	}
}

// unionWith adds the numbers of o, and reports whether the set changed.
func (b bitSet) unionWith(o bitSet) bool {
	var news uint64
	for i := range o {
		news |= o[i] &^ b[i]
		b[i] |= o[i]
	}
	return news != 0
}
