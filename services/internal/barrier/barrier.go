// Package barrier holds the rules by which the watcher writes barriers and informers read them. It does no I/O.
//
// A barrier is a message on the stream ENTAIL_CHANGES that names the barriers before it. With it a reader detects that
// the stream lost messages: then the newest barrier does not name the last barrier that the reader has read.
//
// Barriers form runs. Within a run, no other barrier was stored between two barriers. A barrier names its run and its
// number, and so all earlier barriers of the run. It also names the run before its own and the runs which that one
// names, at most 32.
package barrier

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
)

// maxEarlier bounds the earlier runs that a barrier names. A reader that missed more runs must load the stream again.
const maxEarlier = 32

// Position identifies one barrier. The zero value identifies none.
type Position struct {
	Run    string
	Number uint64
}

// PositionOf returns the position of b.
func PositionOf(b *eventv1.Barrier) Position { return Position{b.GetRun(), b.GetNumber()} }

// IsAtOrAfter reports whether b is the barrier at p, or a later barrier in the same life of the stream.
func IsAtOrAfter(b *eventv1.Barrier, p Position) bool {
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

// maxForeign bounds how many barriers of an earlier term a leader accepts. An earlier leader cannot have sent more,
// because it ends its term before the next term begins.
const maxForeign = 3

// RefusalVerdict is the next step of a writer after the stream refused its barrier.
type RefusalVerdict int

const (
	// GoOn means that the writer writes its next barrier.
	GoOn RefusalVerdict = iota
	// Deposed means that a later term writes barriers. The writer must end its term and write nothing more.
	Deposed
	// Doubt means that the stream was rewound or purged. The writer must withdraw the snapshot markers, compare the
	// stream with the API server again, and begin another run.
	Doubt
	// Forged means that the newest barrier was written by a client that is not the watcher. The next step is the same
	// as for Doubt.
	Forged
)

// barrierDigest is a hash of a barrier.
type barrierDigest [sha256.Size]byte

func digestBarrier(b *eventv1.Barrier) barrierDigest {
	data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(b) // A barrier can always be encoded.
	return sha256.Sum256(data)
}

// HaltDigest returns the digest of the key of a halt. A barrier announces a halt with the digest, and a later barrier
// resumes it with the key. Only the author of the halt has the key.
func HaltDigest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Sequencer numbers the barriers of one term and decides about refusals. It is not safe for concurrent use.
type Sequencer struct {
	term uint64
	run  string
	// attempted is the number of the last barrier that was sent. written is the number of the last one that was
	// accepted.
	attempted, written uint64
	// attempts holds the digests of the barriers that were sent since the last accepted one.
	attempts map[barrierDigest]bool
	earlier  []*eventv1.BarrierRun
	// base is the barrier that precedes the run. expected is the sequence that the next barrier expects.
	base     Position
	expected uint64
	// foreign counts the barriers of an earlier term that this term has accepted.
	foreign int
}

// NewSequencer returns the sequencer of a term. newest is the newest barrier on the stream, or nil; sequence is its
// sequence.
func NewSequencer(term uint64, newest *eventv1.Barrier, sequence uint64) *Sequencer {
	w := &Sequencer{term: term}
	w.BeginRun(newest, sequence)
	return w
}

// BeginRun begins another run after the newest barrier on the stream.
func (w *Sequencer) BeginRun(newest *eventv1.Barrier, sequence uint64) {
	w.run, w.attempted, w.written, w.attempts = rand.Text(), 0, 0, map[barrierDigest]bool{}
	w.expectPrevious(newest, sequence)
}

// expectPrevious makes the first barrier of the run expect newest as the previous barrier.
func (w *Sequencer) expectPrevious(newest *eventv1.Barrier, sequence uint64) {
	w.base, w.expected, w.earlier = PositionOf(newest), sequence, nil
	if w.base.Run == "" {
		return
	}
	w.earlier = append([]*eventv1.BarrierRun{{Run: w.base.Run, LastNumber: w.base.Number}}, newest.GetEarlier()...)
	if len(w.earlier) > maxEarlier {
		w.earlier = w.earlier[:maxEarlier]
	}
}

// StampNext fills in b as the next barrier. It returns the sequence of the barrier that must precede b on the stream.
func (w *Sequencer) StampNext(b *eventv1.Barrier) (expectedSequence uint64) {
	w.attempted = w.written + 1
	b.Term, b.Run, b.Number, b.Earlier = w.term, w.run, w.attempted, w.earlier
	w.attempts[digestBarrier(b)] = true
	return w.expected
}

// HasAcceptedBarrier reports whether the stream has accepted a barrier of the run.
func (w *Sequencer) HasAcceptedBarrier() bool { return w.written > 0 }

// RecordAccepted records that the stream accepted the last barrier.
func (w *Sequencer) RecordAccepted(sequence uint64) {
	w.written, w.expected = w.attempted, sequence
	clear(w.attempts)
}

// HandleRefusal returns the next step after the stream refused the last barrier. newest is the newest barrier on the
// stream, or nil. currentTerm is the term of the present holder of the Lease.
func (w *Sequencer) HandleRefusal(newest *eventv1.Barrier, sequence, currentTerm uint64) RefusalVerdict {
	at := PositionOf(newest)
	switch {
	case w.attempts[digestBarrier(newest)]:
		w.RecordAccepted(sequence) // The barrier was stored, and only its acknowledgement was lost.
		return GoOn
	case newest.GetTerm() > w.term && newest.GetTerm() <= currentTerm:
		return Deposed
	case sequence <= w.expected:
		return Doubt // The stream has no barrier, or its last barrier is not after the expected one.
	case w.written > 0 || newest.GetTerm() >= w.term || w.foreign >= maxForeign:
		return Forged
	}
	w.foreign++
	if at.Run != "" && at.Run == w.base.Run && at.Number > w.base.Number && w.hasEarlierRuns(newest.GetEarlier()) {
		w.expectPrevious(newest, sequence) // The previous leader has written another barrier.
		return GoOn
	}
	return Doubt
}

// hasEarlierRuns reports whether a list of earlier runs begins with those of the base barrier.
func (w *Sequencer) hasEarlierRuns(earlier []*eventv1.BarrierRun) bool {
	base := w.earlier[1:]
	if len(earlier) < len(base) {
		return false
	}
	return slices.EqualFunc(base, earlier[:len(base)], func(a, b *eventv1.BarrierRun) bool { return proto.Equal(a, b) })
}
