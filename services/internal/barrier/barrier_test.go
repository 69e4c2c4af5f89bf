package barrier

import (
	"math"
	"testing"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
)

// casStream holds the newest barrier of a stream that accepts barriers by compare-and-swap.
type casStream struct {
	newest   *eventv1.Barrier
	sequence uint64
	// holder is the term of the Lease's holder.
	holder uint64
}

// write writes the next barrier of w. It reports whether the stream accepted it.
func (s *casStream) write(w *Sequencer) (b *eventv1.Barrier, accepted bool) {
	b = &eventv1.Barrier{}
	if w.StampNext(b) != s.sequence {
		return b, false
	}
	s.newest, s.sequence = b, s.sequence+1
	w.RecordAccepted(s.sequence)
	return b, true
}

// writes writes n barriers, and returns the last one.
func (s *casStream) writes(t *testing.T, w *Sequencer, n int) (b *eventv1.Barrier) {
	t.Helper()
	for range n {
		var accepted bool
		if b, accepted = s.write(w); !accepted {
			t.Fatalf("barrier %d was refused", b.GetNumber())
		}
	}
	return b
}

func TestBarrierNamesEarlierBarriersOfAllRuns(t *testing.T) {
	var s casStream
	first := s.writes(t, NewSequencer(1, nil, 0), 3)
	second := s.writes(t, NewSequencer(2, s.newest, s.sequence), 2)
	for name, c := range map[string]struct {
		by   *eventv1.Barrier
		at   Position
		want bool
	}{
		"itself":                              {second, PositionOf(second), true},
		"one before it":                       {second, Position{second.GetRun(), 1}, true},
		"one behind it":                       {second, Position{second.GetRun(), 3}, false},
		"the last one of the run before":      {second, PositionOf(first), true},
		"an earlier one of the run before":    {second, Position{first.GetRun(), 1}, true},
		"one that the run before lost":        {second, Position{first.GetRun(), 4}, false},
		"one of a later run":                  {first, PositionOf(second), false},
		"one of another run":                  {second, Position{"another", 1}, false},
		"no barrier":                          {second, Position{}, false},
		"a barrier without a number":          {second, Position{second.GetRun(), 0}, false},
		"no barrier, by one that has no runs": {&eventv1.Barrier{}, Position{}, false},
	} {
		if got := IsAtOrAfter(c.by, c.at); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestHandleRefusalDecidesByNewestBarrier(t *testing.T) {
	for name, c := range map[string]struct {
		// change changes the stream after the writer of term 2 has written two barriers after one of term 1.
		change func(t *testing.T, s *casStream, before, w *Sequencer)
		want   RefusalVerdict
	}{
		"its own attempt, the acknowledgement was lost": {func(_ *testing.T, s *casStream, _, w *Sequencer) {
			b := &eventv1.Barrier{}
			w.StampNext(b)
			s.newest, s.sequence = b, s.sequence+1
		}, GoOn},
		"its own earlier barrier, the stream was rewound": {func(_ *testing.T, s *casStream, _, w *Sequencer) {
			s.newest, s.sequence = &eventv1.Barrier{Term: 2, Run: w.run, Number: 1}, s.sequence-1
		}, Doubt},
		"one of the term before, the stream was rewound": {func(_ *testing.T, s *casStream, before, _ *Sequencer) {
			s.newest, s.sequence = &eventv1.Barrier{Term: 1, Run: before.run, Number: 1}, 1
		}, Doubt},
		"a further one of the term before": {func(_ *testing.T, s *casStream, before, _ *Sequencer) {
			s.newest, s.sequence = &eventv1.Barrier{Term: 1, Run: before.run, Number: 2}, s.sequence+1
		}, Forged},
		"one of a later term": {func(t *testing.T, s *casStream, _, _ *Sequencer) {
			s.writes(t, NewSequencer(3, s.newest, s.sequence), 1)
			s.holder = 3
		}, Deposed},
		"one of a term that the Lease does not show": {func(t *testing.T, s *casStream, _, _ *Sequencer) {
			s.writes(t, NewSequencer(math.MaxUint64, s.newest, s.sequence), 1)
		}, Forged},
		"one at the position of its own attempt, with other content": {func(_ *testing.T, s *casStream, _, w *Sequencer) {
			s.newest, s.sequence = &eventv1.Barrier{Halted: "no"}, s.sequence+1
			w.StampNext(s.newest)
			delete(w.attempts, digestBarrier(s.newest))
		}, Forged},
		"its own earlier barrier, written again": {func(_ *testing.T, s *casStream, _, w *Sequencer) {
			s.newest, s.sequence = &eventv1.Barrier{Term: 2, Run: w.run, Number: 1}, s.sequence+1
		}, Forged},
		"one of the same term": {func(t *testing.T, s *casStream, _, _ *Sequencer) {
			s.writes(t, NewSequencer(2, s.newest, s.sequence), 1)
		}, Forged},
		"none, the stream was purged": {func(_ *testing.T, s *casStream, _, _ *Sequencer) { s.newest, s.sequence = nil, 0 }, Doubt},
		"one of another client": {func(_ *testing.T, s *casStream, _, _ *Sequencer) {
			s.newest, s.sequence = &eventv1.Barrier{}, s.sequence+1
		}, Forged},
	} {
		s := casStream{holder: 2}
		before := NewSequencer(1, nil, 0)
		s.writes(t, before, 1)
		w := NewSequencer(2, s.newest, s.sequence)
		s.writes(t, w, 2)
		c.change(t, &s, before, w)
		if _, accepted := s.write(w); accepted {
			t.Errorf("%s: the stream accepted the barrier", name)
		}
		got := w.HandleRefusal(s.newest, s.sequence, s.holder)
		if got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if got == Doubt || got == Forged {
			w.BeginRun(s.newest, s.sequence)
		}
		if _, accepted := s.write(w); accepted != (got != Deposed) {
			t.Errorf("%s: the next barrier is accepted: %v", name, accepted)
		}
	}
}

func TestFirstBarrierOfTermFollowsPreviousLeader(t *testing.T) {
	var s casStream
	before := NewSequencer(1, nil, 0)
	s.writes(t, before, 1)
	w := NewSequencer(2, s.newest, s.sequence)
	last := s.writes(t, before, 2)
	if _, accepted := s.write(w); accepted {
		t.Fatal("the stream accepted a barrier that expects another one")
	}
	if got := w.HandleRefusal(s.newest, s.sequence, s.holder); got != GoOn {
		t.Fatalf("got %v, want GoOn", got)
	}
	if b := s.writes(t, w, 1); !IsAtOrAfter(b, PositionOf(last)) {
		t.Errorf("%v does not name %v", b, last)
	}
}

func TestForgedBarriersBeforeFirstBarrierAreFound(t *testing.T) {
	for name, forge := range map[string]func(before *eventv1.Barrier) *eventv1.Barrier{
		"of the run before": func(b *eventv1.Barrier) *eventv1.Barrier {
			return &eventv1.Barrier{Term: 1, Run: b.GetRun(), Number: b.GetNumber() + 1}
		},
		"of another run": func(*eventv1.Barrier) *eventv1.Barrier { return &eventv1.Barrier{Term: 1, Run: "x", Number: 1} },
		"of a term that the Lease does not show": func(b *eventv1.Barrier) *eventv1.Barrier {
			return &eventv1.Barrier{Term: math.MaxUint64, Run: b.GetRun(), Number: b.GetNumber() + 1}
		},
	} {
		s := casStream{holder: 2}
		s.writes(t, NewSequencer(1, nil, 0), 1)
		w, got := NewSequencer(2, s.newest, s.sequence), GoOn
		for range maxForeign + 1 {
			s.newest, s.sequence = forge(s.newest), s.sequence+1
			if s.write(w); got != Forged {
				got = w.HandleRefusal(s.newest, s.sequence, s.holder)
			}
			if got == Doubt {
				w.BeginRun(s.newest, s.sequence)
			}
		}
		if got != Forged {
			t.Errorf("%s: got %v, want Forged", name, got)
		}
	}
}

func TestReaderOfLostBarrierLoadsAgain(t *testing.T) {
	var s casStream
	w := NewSequencer(1, nil, 0)
	s.writes(t, w, 2)
	backup := s
	lost := s.writes(t, w, 2)
	s = backup
	if _, accepted := s.write(w); accepted || w.HandleRefusal(s.newest, s.sequence, s.holder) != Doubt {
		t.Fatal("the writer goes on behind a stream that was rewound")
	}
	w.BeginRun(s.newest, s.sequence)
	b := s.writes(t, w, 5)
	if IsAtOrAfter(b, PositionOf(lost)) {
		t.Errorf("%v names a barrier that the stream lost", b)
	}
	if !IsAtOrAfter(b, PositionOf(backup.newest)) {
		t.Errorf("%v does not name the barrier of the backup", b)
	}
}

func TestBarrierNamesBoundedNumberOfRuns(t *testing.T) {
	var s casStream
	for range 3 * maxEarlier {
		s.writes(t, NewSequencer(1, s.newest, s.sequence), 1)
	}
	if got := len(s.newest.GetEarlier()); got != maxEarlier {
		t.Errorf("got %d earlier runs, want %d", got, maxEarlier)
	}
}
