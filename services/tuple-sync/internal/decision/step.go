// Package decision evaluates a check step by step and keeps the tree of the steps. It follows the rules of OpenFGA's
// Check, which returns an answer without its reasons.
//
// An answer can be undecided: a condition lacks a parameter, or a part of the tree was left out. As in OpenFGA, an
// undecided step does not matter where another step decides. In a union, a step that holds decides. In an intersection,
// a step that does not hold decides.
package decision

import openfgav1 "github.com/openfga/api/proto/openfga/v1"

// Answer is the result of a step.
type Answer int

// Answers of a step.
const (
	No Answer = iota
	Yes
	Undecided
)

// Kind is the kind of a step. It determines how the answer follows from the children.
type Kind int

// Kinds of steps.
const (
	// Relation is a relation to an object. Its child is the definition of the relation.
	Relation Kind = iota
	// Any holds if one of the children holds.
	Any
	// All holds if all children hold.
	All
	// ButNot holds if the first child holds and the second one does not.
	ButNot
	// Direct holds if a tuple that assigns the relation itself holds.
	Direct
	// From holds if a tuple that leads to another object holds.
	From
	// Tuple holds if the condition is met, and the relation to which the tuple leads holds.
	Tuple
)

// Step is one step of a decision.
type Step struct {
	Kind   Kind
	Answer Answer
	// Object and Relation are set for Relation. For From, Relation is the text of the definition, such as "member from
	// workspace".
	Object, Relation string
	// Reason explains an answer that does not follow from the children.
	Reason string
	// Repeated means that an earlier step with the same object and relation holds the children.
	Repeated bool
	Tuple    *openfgav1.TupleKey
	Children []*Step

	// cyclic means that the answer is no because the path returned to itself.
	cyclic bool
}

// setAnswer sets the answer of a step that follows from its children.
func (s *Step) setAnswer() *Step {
	switch s.Kind {
	case All:
		s.setAllAnswer()
	case ButNot:
		s.setButNotAnswer(s.Children[0], s.Children[1])
	case Relation, Tuple:
		if len(s.Children) > 0 {
			s.Answer, s.cyclic = s.Children[0].Answer, s.Children[0].cyclic
		}
	default:
		s.setAnyAnswer()
	}
	return s
}

func (s *Step) setAnyAnswer() {
	s.Answer = No
	for _, c := range s.Children {
		s.cyclic = s.cyclic || c.cyclic
		switch c.Answer {
		case Yes:
			s.Answer, s.cyclic = Yes, false
			return
		case Undecided:
			s.Answer = Undecided
		case No:
		}
	}
}

func (s *Step) setAllAnswer() {
	s.Answer = Yes
	for _, c := range s.Children {
		s.cyclic = s.cyclic || c.cyclic
		switch {
		case c.Answer == No:
			s.Answer = No
		case c.Answer == Undecided && s.Answer == Yes:
			s.Answer = Undecided
		}
	}
}

// setButNotAnswer sets the answer from both children. The answer is undecided if the excluded relation depends on
// itself. OpenFGA then allows or denies, depending on the order in which it evaluates.
func (s *Step) setButNotAnswer(base, except *Step) {
	s.cyclic = base.cyclic || except.cyclic
	switch {
	case base.Answer == No, except.Answer == Yes:
		s.Answer = No
	case except.cyclic:
		s.Answer, s.Reason = Undecided, "the excluded relation depends on itself"
	case base.Answer == Undecided || except.Answer == Undecided:
		s.Answer = Undecided
	default:
		s.Answer = Yes
	}
}
