// Package barrier holds the rules by which the watcher writes barriers and views read them.
//
// A barrier is a message on ENTAIL_CHANGES that expects the barrier before it. Barriers form runs: within a run the
// stream accepted each barrier as the direct successor of the one before. A barrier names all earlier ones of its run,
// and those of earlier runs that the stream still held when the next run began. So a reader that read a barrier which
// the newest one does not name has read a part of the stream that was lost. The package does no I/O.
package barrier

import (
	"crypto/rand"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
)

// maxEarlier bounds the earlier runs that a barrier names. A reader that was away for more runs loads again.
const maxEarlier = 32

// Position names one barrier. The zero value names none.
type Position struct {
	Run    string
	Number uint64
}

// Of returns the position of b.
func Of(b *eventv1.Barrier) Position { return Position{b.GetRun(), b.GetNumber()} }

// Names reports whether b is the barrier at p or was written behind it, in the same life of the stream.
func Names(b *eventv1.Barrier, p Position) bool {
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

// Verdict says how a writer goes on after the stream refused a barrier.
type Verdict int

const (
	// GoOn means that the writer writes its next barrier.
	GoOn Verdict = iota
	// Deposed means that a later term writes barriers: the writer must end its term, and write nothing.
	Deposed
	// Doubt means that the stream was rewound, purged or forged: the writer must withdraw the snapshot markers, compare
	// everything again, and begin another run.
	Doubt
)

// Writer writes the barriers of one term. It is not safe for concurrent use.
type Writer struct {
	term uint64
	run  string
	// attempted is the number of the last barrier that was sent, written the number of the last one that was accepted.
	attempted, written uint64
	earlier            []*eventv1.BarrierRun
	// base is the barrier that the first one of the run expects.
	base     Position
	expected uint64
}

// NewWriter returns the writer of a term. newest is the newest barrier on the stream, or nil, and sequence its sequence.
func NewWriter(term uint64, newest *eventv1.Barrier, sequence uint64) *Writer {
	w := &Writer{term: term}
	w.Begin(newest, sequence)
	return w
}

// Begin begins another run behind the newest barrier on the stream.
func (w *Writer) Begin(newest *eventv1.Barrier, sequence uint64) {
	w.run, w.attempted, w.written = rand.Text(), 0, 0
	w.follow(newest, sequence)
}

// follow makes a barrier the one that the first barrier of the run expects.
func (w *Writer) follow(newest *eventv1.Barrier, sequence uint64) {
	w.base, w.expected, w.earlier = Of(newest), sequence, nil
	if w.base.Run == "" {
		return
	}
	w.earlier = append([]*eventv1.BarrierRun{{Run: w.base.Run, LastNumber: w.base.Number}}, newest.GetEarlier()...)
	if len(w.earlier) > maxEarlier {
		w.earlier = w.earlier[:maxEarlier]
	}
}

// Next completes b as the next barrier. It returns the sequence of the barrier that b expects.
func (w *Writer) Next(b *eventv1.Barrier) (expected uint64) {
	w.attempted = w.written + 1
	b.Term, b.Run, b.Number, b.Earlier = w.term, w.run, w.attempted, w.earlier
	return w.expected
}

// HasWritten reports whether the stream accepted a barrier of the run.
func (w *Writer) HasWritten() bool { return w.written > 0 }

// Written records that the stream accepted the last barrier.
func (w *Writer) Written(sequence uint64) {
	w.written, w.expected = w.attempted, sequence
}

// Refused decides after the stream refused the last barrier. newest is the newest barrier on the stream, or nil.
func (w *Writer) Refused(newest *eventv1.Barrier, sequence uint64) Verdict {
	at := Of(newest)
	switch {
	case at.Run == w.run && at.Number > w.written && at.Number <= w.attempted:
		w.written, w.expected = at.Number, sequence // The acknowledgement was lost.
		return GoOn
	case w.written == 0 && at.Run != "" && at.Run == w.base.Run && at.Number > w.base.Number:
		w.follow(newest, sequence) // The leader before still wrote.
		return GoOn
	case newest.GetTerm() > w.term:
		return Deposed
	}
	return Doubt
}
