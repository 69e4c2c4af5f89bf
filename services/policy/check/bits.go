package check

// bits is a set of small numbers below a fixed size.
type bits []uint64

const wordBits = 64

func newBits(size int) bits { return make(bits, (size+wordBits-1)/wordBits) }

func (b bits) has(i int) bool { return b != nil && b[i/wordBits]&(1<<(i%wordBits)) != 0 }

func (b bits) add(i int) { b[i/wordBits] |= 1 << (i % wordBits) }

// and removes the numbers that o lacks; a nil set is empty.
func (b bits) and(o bits) {
	if o == nil {
		clear(b)
		return
	}
	for i := range b {
		b[i] &= o[i]
	}
}

// or adds the numbers of o, and reports whether the set changed.
func (b bits) or(o bits) bool {
	var news uint64
	for i := range o {
		news |= o[i] &^ b[i]
		b[i] |= o[i]
	}
	return news != 0
}
