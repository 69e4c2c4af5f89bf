package history

import (
	"fmt"
	"slices"
	"time"
)

// AllowAnswer is an answer of yes.
type AllowAnswer struct {
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

// AnswerVerifier judges answers by the states of a timeline.
type AnswerVerifier struct {
	states    []*timelineState
	questions []AccessQuestion
}

// NewVerifier returns a verifier of answers to these questions. It holds for answers that ended before the last mark.
func (t *Timeline) NewVerifier(questions []AccessQuestion) *AnswerVerifier {
	return &AnswerVerifier{t.collectStates(), questions}
}

// VerifyAnswer judges an answer that must follow from objects at some time from since until the end of the answer.
func (v *AnswerVerifier) VerifyAnswer(a AllowAnswer, since time.Time) Verdict {
	var inTime []*timelineState
	for _, s := range slices.Backward(v.states) {
		if !s.overlaps(since, a.End) {
			continue
		}
		if v.isAllowedIn(s, a.Question) {
			return Right
		}
		inTime = append(inTime, s)
	}
	mixed := possibleContents{}
	for _, s := range inTime {
		for k, objects := range s.contents {
			if !slices.Contains(mixed[k], objects[0]) {
				mixed[k] = append(mixed[k], objects[0])
			}
		}
	}
	if mixed.canAllow(v.questions[a.Question]) {
		return Mixed
	}
	return Wrong
}

// isAllowedIn reports whether a state allows what a question asks.
func (v *AnswerVerifier) isAllowedIn(s *timelineState, question int) bool {
	allowed, known := s.allowed[question]
	if !known {
		allowed = s.contents.canAllow(v.questions[question])
		s.allowed[question] = allowed
	}
	return allowed
}

// AllowedNow returns the questions that the newest state allows.
func (v *AnswerVerifier) AllowedNow() (allowed []int) {
	for i := range v.questions {
		if v.isAllowedIn(v.states[len(v.states)-1], i) {
			allowed = append(allowed, i)
		}
	}
	return allowed
}

// DescribeLastAllowed returns how long before the answer its question was last allowed, or that no recorded state allowed it.
func (v *AnswerVerifier) DescribeLastAllowed(a AllowAnswer) string {
	for _, s := range slices.Backward(v.states) {
		if !s.last && s.until.Before(a.Start) && v.isAllowedIn(s, a.Question) {
			return fmt.Sprintf("last allowed %s before", a.Start.Sub(s.until).Round(time.Millisecond))
		}
	}
	return "not allowed by any recorded state before"
}
