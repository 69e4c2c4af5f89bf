// Package barrier holds the rules by which the watcher writes barriers and views read them.
//
// A barrier is a message on ENTAIL_CHANGES that expects the barrier before it. Barriers form runs: within a run the
// stream accepted each barrier as the direct successor of the one before. A barrier names all earlier ones of its run,
// and those of earlier runs that the stream still held when the next run began. So a reader that read a barrier which
// the newest one does not name has read a part of the stream that was lost. The package does no I/O.
package barrier

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
)

// maxEarlier bounds the earlier runs that a barrier names. A reader that was away for more runs loads again.
const maxEarlier = 32

// Position names one barrier. The zero value names none.
type Position struct {
	Run    string
	Number uint64
}

// PositionOf returns the position of b.
func PositionOf(b *eventv1.Barrier) Position { return Position{b.GetRun(), b.GetNumber()} }

// IncludesPosition reports whether b is the barrier at p or was written behind it, in the same life of the stream.
func IncludesPosition(b *eventv1.Barrier, p Position) bool {
	if p.Run == "" || p.Number == 0 {
		return false
	}
	if b.GetRun() == p.Run {
		return p.Number <= b.GetNumber()
	}
	for _, earlier := range b.GetEarlier() {
		if earlier.GetRun() == p.Run {
			return p.Number <= earlier.GetLastNumber()
		}
	}
	return false
}

// maxForeign bounds the barriers of an earlier term that one term may meet. A leader ends its term before another begins.
const maxForeign = 3

// RefusalVerdict is the next step of a writer after the stream refused a barrier.
type RefusalVerdict int

const (
	// GoOn means that the writer writes its next barrier.
	GoOn RefusalVerdict = iota
	// Deposed means that a later term writes barriers: the writer must end its term, and write nothing.
	Deposed
	// Doubt means that the stream was rewound or purged: the writer must withdraw the snapshot markers, compare everything
	// again, and begin another run.
	Doubt
	// Forged means that another client wrote a barrier, and no holder of the Lease can have. The writer must do the same.
	Forged
)

// barrierDigest is a fingerprint of a barrier.
type barrierDigest [sha256.Size]byte

func digestBarrier(b *eventv1.Barrier) barrierDigest {
	data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(b) // A barrier can always be encoded.
	return sha256.Sum256(data)
}

// HaltDigest returns the digest that announces a halt with a key. Only the key proves that the halt was resumed.
func HaltDigest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Sequencer writes the barriers of one term. It is not safe for concurrent use.
type Sequencer struct {
	term uint64
	run  string
	// attempted is the number of the last barrier that was sent, written the number of the last one that was accepted.
	attempted, written uint64
	// attempts holds the digests of the barriers that were sent since the last one that was accepted.
	attempts map[barrierDigest]bool
	earlier  []*eventv1.BarrierRun
	// base is the barrier that the first one of the run expects.
	base     Position
	expected uint64
	// foreign counts the barriers of an earlier term that this one met.
	foreign int
}

// NewSequencer returns the writer of a term. newest is the newest barrier on the stream, or nil, and sequence its sequence.
func NewSequencer(term uint64, newest *eventv1.Barrier, sequence uint64) *Sequencer {
	w := &Sequencer{term: term}
	w.BeginRun(newest, sequence)
	return w
}

// BeginRun begins another run behind the newest barrier on the stream.
func (w *Sequencer) BeginRun(newest *eventv1.Barrier, sequence uint64) {
	w.run, w.attempted, w.written, w.attempts = rand.Text(), 0, 0, map[barrierDigest]bool{}
	w.expectAfter(newest, sequence)
}

// expectAfter makes a barrier the one that the first barrier of the run expects.
func (w *Sequencer) expectAfter(newest *eventv1.Barrier, sequence uint64) {
	w.base, w.expected, w.earlier = PositionOf(newest), sequence, nil
	if w.base.Run == "" {
		return
	}
	w.earlier = append([]*eventv1.BarrierRun{{Run: w.base.Run, LastNumber: w.base.Number}}, newest.GetEarlier()...)
	if len(w.earlier) > maxEarlier {
		w.earlier = w.earlier[:maxEarlier]
	}
}

// StampNext completes b as the next barrier. It returns the sequence of the barrier that b expects.
func (w *Sequencer) StampNext(b *eventv1.Barrier) (expected uint64) {
	w.attempted = w.written + 1
	b.Term, b.Run, b.Number, b.Earlier = w.term, w.run, w.attempted, w.earlier
	w.attempts[digestBarrier(b)] = true
	return w.expected
}

// HasAcceptedBarrier reports whether the stream accepted a barrier of the run.
func (w *Sequencer) HasAcceptedBarrier() bool { return w.written > 0 }

// RecordAccepted records that the stream accepted the last barrier.
func (w *Sequencer) RecordAccepted(sequence uint64) {
	w.written, w.expected = w.attempted, sequence
	clear(w.attempts)
}

// DecideRefusal decides after the stream refused the last barrier. newest is the newest barrier on the stream, or nil. current is
// the term of the Lease's holder.
func (w *Sequencer) DecideRefusal(newest *eventv1.Barrier, sequence, current uint64) RefusalVerdict {
	at := PositionOf(newest)
	switch {
	case w.attempts[digestBarrier(newest)]:
		w.RecordAccepted(sequence) // The acknowledgement was lost.
		return GoOn
	case newest.GetTerm() > w.term && newest.GetTerm() <= current:
		return Deposed
	case sequence <= w.expected:
		return Doubt // The stream ends before the expected barrier, or has none.
	case w.written > 0 || newest.GetTerm() >= w.term || w.foreign >= maxForeign:
		return Forged
	}
	w.foreign++
	if at.Run != "" && at.Run == w.base.Run && at.Number > w.base.Number && w.hasEarlierRuns(newest.GetEarlier()) {
		w.expectAfter(newest, sequence) // The leader before still wrote.
		return GoOn
	}
	return Doubt
}

// hasEarlierRuns reports whether the run of the base has these earlier runs.
func (w *Sequencer) hasEarlierRuns(earlier []*eventv1.BarrierRun) bool {
	base := w.earlier[1:]
	if len(earlier) < len(base) {
		return false
	}
	return slices.EqualFunc(base, earlier[:len(base)], func(a, b *eventv1.BarrierRun) bool { return proto.Equal(a, b) })
}
