package history

import (
	"fmt"
	"slices"
	"time"
)

// Answer is an answer of yes.
type Answer struct {
	// Question is the index of the question, From the server that answered.
	Question int
	From     string
	// Start is the time before the question was sent, End the time after its answer.
	Start, End time.Time
}

// Verdict is the result of a check.
type Verdict int

// Verdicts.
const (
	// Right means that one state of the objects allows it.
	Right Verdict = iota
	// Mixed means that no single state allows it, but each object that it follows from had that content in time.
	Mixed
	// Wrong means that it follows from nothing that was in force in time.
	Wrong
)

// Verifier judges answers by the states of a timeline.
type Verifier struct {
	states    []*state
	questions []Question
}

// Verifier returns a verifier of answers to these questions. It holds for answers that ended before the last mark.
func (t *Timeline) Verifier(questions []Question) *Verifier { return &Verifier{t.states(), questions} }

// Verify judges an answer that must follow from objects at some time from since until the end of the answer.
func (v *Verifier) Verify(a Answer, since time.Time) Verdict {
	var inTime []*state
	for _, s := range slices.Backward(v.states) {
		if !s.overlaps(since, a.End) {
			continue
		}
		if v.allows(s, a.Question) {
			return Right
		}
		inTime = append(inTime, s)
	}
	mixed := contents{}
	for _, s := range inTime {
		for k, objects := range s.contents {
			if !slices.Contains(mixed[k], objects[0]) {
				mixed[k] = append(mixed[k], objects[0])
			}
		}
	}
	if mixed.allows(v.questions[a.Question]) {
		return Mixed
	}
	return Wrong
}

// allows reports whether a state allows what a question asks.
func (v *Verifier) allows(s *state, question int) bool {
	allowed, known := s.allowed[question]
	if !known {
		allowed = s.contents.allows(v.questions[question])
		s.allowed[question] = allowed
	}
	return allowed
}

// Now returns the questions that the newest state allows.
func (v *Verifier) Now() (allowed []int) {
	for i := range v.questions {
		if v.allows(v.states[len(v.states)-1], i) {
			allowed = append(allowed, i)
		}
	}
	return allowed
}

// LastAllowed returns how long before the answer its question was last allowed, or that no recorded state allowed it.
func (v *Verifier) LastAllowed(a Answer) string {
	for _, s := range slices.Backward(v.states) {
		if !s.last && s.until.Before(a.Start) && v.allows(s, a.Question) {
			return fmt.Sprintf("last allowed %s before", a.Start.Sub(s.until).Round(time.Millisecond))
		}
	}
	return "not allowed by any recorded state before"
}
