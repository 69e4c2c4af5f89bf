package report

import (
	"bufio"
	"strings"
	"testing"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

// relationStep returns the step of a relation to an object.
func relationStep(name string, answer tuplev1.Decision_Answer, children ...*tuplev1.Decision) *tuplev1.Decision {
	object, relation, _ := strings.Cut(name, "#")
	return &tuplev1.Decision{Kind: tuplev1.Decision_KIND_RELATION, Answer: answer, Object: object, Relation: relation, Children: children}
}

func operatorStep(kind tuplev1.Decision_Kind, answer tuplev1.Decision_Answer, children ...*tuplev1.Decision) *tuplev1.Decision {
	return &tuplev1.Decision{Kind: kind, Answer: answer, Children: children}
}

// tupleStep returns the step of a tuple object#relation@user that Store demo declares.
func tupleStep(text string, answer tuplev1.Decision_Answer, children ...*tuplev1.Decision) *tuplev1.Decision {
	object, rest, _ := strings.Cut(text, "#")
	relation, user, _ := strings.Cut(rest, "@")
	return &tuplev1.Decision{
		Kind: tuplev1.Decision_KIND_TUPLE, Answer: answer, Children: children, Origin: tuplev1.Origin_ORIGIN_DECLARED,
		Tuple: &tuplev1.Tuple{
			Key:    &tuplev1.TupleKey{Object: object, Relation: relation, User: user},
			Owners: []*tuplev1.Owner{{Kind: "Store", Name: "demo", Field: "spec.tuples[2]"}},
		},
	}
}

const (
	yes = tuplev1.Decision_ANSWER_YES
	no  = tuplev1.Decision_ANSWER_NO
)

// linesOf returns the lines of a table, with single spaces between its cells.
func linesOf(tree *tuplev1.Decision, all bool) string {
	var b strings.Builder
	p := Printer{Out: bufio.NewWriter(&b)}
	p.WriteDecision(&tuplev1.ExplainCheckResponse{Allowed: tree.GetAnswer() == yes, Tree: tree}, all)
	_ = p.Out.Flush()
	var lines []string
	for line := range strings.Lines(b.String()) {
		var cells []string
		for cell := range strings.SplitSeq(line, "   ") {
			if cell = strings.TrimSpace(cell); cell != "" {
				cells = append(cells, cell)
			}
		}
		lines = append(lines, strings.Join(cells, " | "))
	}
	return strings.Join(lines, "\n")
}

func TestDecisionShowsDecisiveSteps(t *testing.T) {
	viaRole := tupleStep("doc:1#viewer@role:staff#assignee", yes, relationStep("role:staff#assignee", yes, operatorStep(tuplev1.Decision_KIND_DIRECT, yes,
		tupleStep("role:staff#assignee@user:beth", yes))))
	unrelated := &tuplev1.Decision{Kind: tuplev1.Decision_KIND_RELATION, Answer: no, Object: "doc:1", Relation: "robot", Reason: "the model gives it to nobody"}
	unmanaged := tupleStep("doc:1#viewer@user:carl", yes)
	unmanaged.Origin = tuplev1.Origin_ORIGIN_UNMANAGED
	unmet := tupleStep("doc:1#viewer@user:carl", no)
	unmet.Reason = "condition office is not met"
	for name, test := range map[string]struct {
		tree *tuplev1.Decision
		all  bool
		want []string
	}{
		"a yes hides what does not hold": {
			tree: relationStep("doc:1#viewer", yes, operatorStep(tuplev1.Decision_KIND_ANY, yes, operatorStep(tuplev1.Decision_KIND_DIRECT, yes, viaRole),
				relationStep("doc:1#editor", no), unrelated)),
			want: []string{
				"yes", "STEP | IS | WHY", "doc:1#viewer | yes", "└─ doc:1#viewer@role:staff#assignee | yes | Store/demo spec.tuples[2]",
				"└─ role:staff#assignee | yes", "└─ role:staff#assignee@user:beth | yes | Store/demo spec.tuples[2]",
			},
		},
		"a no shows what is missing": {
			tree: relationStep("doc:1#viewer", no, operatorStep(tuplev1.Decision_KIND_ANY, no, operatorStep(tuplev1.Decision_KIND_DIRECT, no, unmet),
				relationStep("doc:1#editor", no, operatorStep(tuplev1.Decision_KIND_DIRECT, no)), unrelated)),
			want: []string{
				"no", "STEP | IS | WHY", "doc:1#viewer | no", "├─ doc:1#viewer@user:carl | no | Store/demo spec.tuples[2]; condition office is not met",
				"└─ doc:1#editor | no", "└─ a tuple | no | no tuple for this user",
			},
		},
		"everything": {
			tree: relationStep("doc:1#viewer", yes, operatorStep(tuplev1.Decision_KIND_ANY, yes, operatorStep(tuplev1.Decision_KIND_DIRECT, yes, unmanaged), unrelated)),
			all:  true,
			want: []string{
				"yes", "STEP | IS | WHY", "doc:1#viewer | yes", "├─ doc:1#viewer@user:carl | yes | unmanaged: no object declares it",
				"└─ doc:1#robot | no | the model gives it to nobody",
			},
		},
		"an exclusion": {
			tree: relationStep("doc:1#viewer", yes, operatorStep(tuplev1.Decision_KIND_BUT_NOT, yes,
				operatorStep(tuplev1.Decision_KIND_DIRECT, yes, unmanaged), relationStep("doc:1#blocked", no, operatorStep(tuplev1.Decision_KIND_DIRECT, no)))),
			want: []string{
				"yes", "STEP | IS | WHY", "doc:1#viewer | yes", "├─ doc:1#viewer@user:carl | yes | unmanaged: no object declares it", "└─ but not doc:1#blocked | no",
			},
		},
		"an intersection": {
			tree: relationStep("doc:1#viewer", no, operatorStep(tuplev1.Decision_KIND_ANY, no,
				operatorStep(tuplev1.Decision_KIND_ALL, no, relationStep("doc:1#staff", yes), relationStep("doc:1#paid", no)))),
			want: []string{
				"no", "STEP | IS | WHY", "doc:1#viewer | no", "└─ all of | no", "├─ doc:1#staff | yes", "└─ and doc:1#paid | no",
			},
		},
	} {
		if got := linesOf(test.tree, test.all); got != strings.Join(test.want, "\n") {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}
