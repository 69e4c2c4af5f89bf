package report

import (
	"fmt"
	"strings"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

// WriteCheckAnswer prints whether a user has a relation, and what was considered if not.
func (p Printer) WriteCheckAnswer(r *tuplev1.CheckRequest, m *tuplev1.CheckResponse) {
	if m.GetAllowed() {
		p.writeLinef("yes")
		return
	}
	considered := "the tuples in OpenFGA"
	if len(r.GetContextualTuples()) > 0 {
		considered += " and those of --tuple"
	}
	p.writeLinef("no: %s do not give it, by model %s of Store %s; entail why shows each step", considered, m.GetAuthorizationModelId(), r.GetStore())
}

// WriteDecision prints the tree behind an answer. Unless all is set, it leaves out the steps that cannot matter.
func (p Printer) WriteDecision(m *tuplev1.ExplainCheckResponse, all bool) {
	answer := "no"
	if m.GetAllowed() {
		answer = "yes"
	}
	if m.GetTree().GetAnswer() == tuplev1.Decision_ANSWER_UNDECIDED {
		answer += " by OpenFGA; the steps below do not prove it"
	}
	p.writeLinef("%s", answer)
	t := decisionTree{all: all, allowed: m.GetTree().GetAnswer() == tuplev1.Decision_ANSWER_YES}
	t.addStep(m.GetTree(), "", "", "")
	p.writeTable([]string{"STEP", "IS", headWhy}, t.rows)
	if m.GetTruncated() {
		p.writeLinef("The tree is too large: steps were left out.")
	}
}

// decisionTree collects the rows of a tree.
type decisionTree struct {
	all bool
	// allowed means that only the steps that hold matter.
	allowed bool
	rows    []tableRow
}

// addStep adds a step and the steps below it. lead precedes its text, and below the texts of its children.
func (t *decisionTree) addStep(s *tuplev1.Decision, label, lead, below string) {
	ink := map[tuplev1.Decision_Answer]ansiColor{tuplev1.Decision_ANSWER_YES: good, tuplev1.Decision_ANSWER_UNDECIDED: wait}[s.GetAnswer()]
	t.rows = append(t.rows, tableRow{
		cells: []string{lead + label + stepText(s), formatEnum(s.GetAnswer().String(), "ANSWER_"), stepReason(s)}, ink: ink,
	})
	children := t.visibleChildren(s)
	for i, child := range children {
		own, further := branchTexts(i, len(children))
		t.addStep(child.step, child.label, below+own, below+further)
	}
}

// labelledStep is a step with the operator before it.
type labelledStep struct {
	label string
	step  *tuplev1.Decision
}

// visibleChildren returns the steps to show below a step. Unions have no line of their own, and neither has the operator
// of a relation's definition.
func (t *decisionTree) visibleChildren(s *tuplev1.Decision) (shown []labelledStep) {
	for i, child := range s.GetChildren() {
		label := ""
		switch {
		case s.GetKind() == tuplev1.Decision_KIND_BUT_NOT && i == 1:
			shown = append(shown, labelledStep{"but not ", child})
			continue
		case s.GetKind() == tuplev1.Decision_KIND_ALL && i > 0:
			label = "and "
		}
		if !t.isRelevant(child) {
			continue
		}
		operands := []labelledStep{{label, child}}
		isOperand := s.GetKind() == tuplev1.Decision_KIND_ALL || s.GetKind() == tuplev1.Decision_KIND_BUT_NOT
		if hidden := t.visibleChildren(child); isUnion(child) && (!isOperand || len(hidden) == 1) || isDefinition(s, child) {
			operands = hidden
			if len(operands) > 0 {
				operands[0].label = label + operands[0].label
			}
		}
		shown = append(shown, operands...)
	}
	return shown
}

// isDefinition reports whether child is the operator that defines the relation s.
func isDefinition(s, child *tuplev1.Decision) bool {
	isOperator := child.GetKind() == tuplev1.Decision_KIND_ALL || child.GetKind() == tuplev1.Decision_KIND_BUT_NOT
	return s.GetKind() == tuplev1.Decision_KIND_RELATION && isOperator
}

// isRelevant reports whether a step is shown. Below a yes these are the steps that hold; otherwise they are all that
// the model makes possible.
func (t *decisionTree) isRelevant(s *tuplev1.Decision) bool {
	switch {
	case t.all:
		return true
	case t.allowed:
		return s.GetAnswer() == tuplev1.Decision_ANSWER_YES
	default:
		return s.GetKind() != tuplev1.Decision_KIND_RELATION || s.GetReason() == "" || s.GetAnswer() != tuplev1.Decision_ANSWER_NO
	}
}

// isUnion reports whether a step holds if one of its children holds, and has children to show in its place.
func isUnion(s *tuplev1.Decision) bool {
	switch s.GetKind() {
	case tuplev1.Decision_KIND_ANY:
		return true
	case tuplev1.Decision_KIND_DIRECT, tuplev1.Decision_KIND_FROM:
		return len(s.GetChildren()) > 0
	default:
		return false
	}
}

func stepText(s *tuplev1.Decision) string {
	switch s.GetKind() {
	case tuplev1.Decision_KIND_RELATION:
		return s.GetObject() + "#" + s.GetRelation()
	case tuplev1.Decision_KIND_ANY:
		return "one of"
	case tuplev1.Decision_KIND_ALL:
		return "all of"
	case tuplev1.Decision_KIND_BUT_NOT:
		return "the first, not the second"
	case tuplev1.Decision_KIND_DIRECT:
		return "a tuple"
	case tuplev1.Decision_KIND_FROM:
		return s.GetRelation()
	default:
		return tupleText(s.GetTuple().GetKey(), s.GetTuple().GetCondition())
	}
}

// stepReason returns the objects that declare a tuple, and the reason of an answer.
func stepReason(s *tuplev1.Decision) string {
	reason := s.GetReason()
	switch {
	case s.GetRepeated():
		reason = "as shown before"
	case s.GetReason() == "" && len(s.GetChildren()) == 0 && s.GetKind() == tuplev1.Decision_KIND_DIRECT:
		reason = "no tuple for this user"
	case s.GetReason() == "" && len(s.GetChildren()) == 0 && s.GetKind() == tuplev1.Decision_KIND_FROM:
		reason = "no such tuple"
	}
	if s.GetKind() != tuplev1.Decision_KIND_TUPLE {
		return reason
	}
	return strings.TrimSuffix(originOfTuple(s)+"; "+reason, "; ")
}

// originOfTuple returns the objects that declare a tuple, or another source.
func originOfTuple(s *tuplev1.Decision) string {
	switch s.GetOrigin() {
	case tuplev1.Origin_ORIGIN_DECLARED:
		var owners []string
		for _, o := range s.GetTuple().GetOwners() {
			owners = append(owners, strings.TrimSpace(fmt.Sprintf("%s/%s %s", o.GetKind(), o.GetName(), o.GetField())))
		}
		return strings.Join(owners, ", ")
	case tuplev1.Origin_ORIGIN_UNMANAGED:
		return "unmanaged: no object declares it"
	case tuplev1.Origin_ORIGIN_LEAVING:
		return "no object declares it any more; tuple-sync removes or replaces it"
	case tuplev1.Origin_ORIGIN_IAM:
		return "objects of IAM; entail explain access names them"
	case tuplev1.Origin_ORIGIN_REQUEST:
		return "--tuple"
	default:
		return "declared by an object that changes now"
	}
}

// BatchAnswer is the answer to one question of a batch.
type BatchAnswer struct {
	User     string `json:"user"`
	Relation string `json:"relation"`
	Object   string `json:"object"`
	// Answer is yes, no, undecided or error.
	Answer  string `json:"answer"`
	Message string `json:"message,omitempty"`
}

// WriteBatchAnswers prints the answer to each question.
func (p Printer) WriteBatchAnswers(answers []BatchAnswer) {
	rows := make([]tableRow, len(answers))
	for i, a := range answers {
		rows[i] = tableRow{cells: []string{a.User, a.Relation, a.Object, a.Answer, a.Message}}
	}
	p.writeTable([]string{"USER", "RELATION", "OBJECT", "ANSWER", headWhy}, rows)
}
