package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/explain"
)

// word returns a name with letters only, as relations and actions require.
func word(i int) string {
	return strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprintf("%06d", i))
}

// repeated joins the texts for n numbers.
func repeated(n int, text func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(text(i))
	}
	return b.String()
}

func TestFindingsToProtoKeepsErrorsWhenTruncated(t *testing.T) {
	const warnings, errs = 1500, 3
	content := "resourceTypes:\n  - {name: tenant, idPrefix: idntten}\nactions:\n" +
		repeated(warnings, func(i int) string { return "  - name: " + word(i) + "\n" })
	check := func(content string) *policyv1.CheckPolicyResponse {
		return must(newServer(t).CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: policyOfFile(content)}))(t)
	}
	got := check(content)
	if f := got.GetFindings(); !got.GetOk() || !f.GetTruncated() || len(f.GetDiagnostics()) != maxListed || f.GetTotal() < warnings {
		t.Errorf("warnings: ok %t, %d of %d", got.GetOk(), len(f.GetDiagnostics()), f.GetTotal())
	}
	wrong := check("actions:\n" + repeated(warnings, func(int) string { return "  - name: UP\n" }))
	if f := wrong.GetFindings(); wrong.GetOk() || !f.GetTruncated() || len(f.GetDiagnostics()) != maxListed || f.GetTotal() < warnings {
		t.Errorf("errors: ok %t, %d of %d", wrong.GetOk(), len(f.GetDiagnostics()), f.GetTotal())
	}
	// The check for long names runs only on valid policies, so the policy also has warnings.
	mixed := check(content + repeated(errs, func(i int) string { return "  - name: " + word(i) + strings.Repeat("z", maxName) + "\n" }))
	f := mixed.GetFindings()
	if mixed.GetOk() || f.GetTotal() < warnings+errs || !f.GetTruncated() || !slices.Equal(codes(f), slices.Repeat([]string{"E-LIMIT"}, errs)) {
		t.Errorf("both: ok %t, %d of %d: %v", mixed.GetOk(), len(f.GetDiagnostics()), f.GetTotal(), codes(f)[:min(5, len(f.GetDiagnostics()))])
	}
}

// bindAllActionsToAllTypes binds each action to each type through one union of all types, which is the parent of each.
// The action follows from a role, or through the parent.
func bindAllActionsToAllTypes(types, actions int) string { return bound(types, actions, through) }

// policyOfMutualActions lets each of so many actions follow from any of them, on each of as many types.
func policyOfMutualActions(n int) string {
	all := repeated(n, through)
	return bound(n, n, func(int) string { return all })
}

// through returns the condition that the subject has an action on the parent.
func through(i int) string {
	return "      - relationshipAction: {relation: parent, actionName: " + word(i) + "}\n"
}

// bound returns a policy with conditions for each action besides its role.
func bound(types, actions int, conditions func(i int) string) string {
	return "unions:\n  - name: all\n    resourceTypes:\n" + repeated(types, func(i int) string { return fmt.Sprintf("      - type%d\n", i) }) +
		"resourceTypes:\n" + repeated(types, func(i int) string {
		return fmt.Sprintf("  - {name: type%d, idPrefix: pfx%d, relationships: [{relation: parent, targetTypes: [all]}]}\n", i, i)
	}) +
		"actions:\n" + repeated(actions, func(i int) string { return "  - name: " + word(i) + "\n" }) +
		"actionBindings:\n" + repeated(actions, func(i int) string {
		return "  - actionName: " + word(i) + "\n    typeName: all\n    conditions:\n      - roleBinding: {}\n" + conditions(i)
	})
}

func TestReadPolicyBoundsSize(t *testing.T) {
	long := strings.Repeat("z", maxName+1)
	tests := map[string]struct{ content, words string }{
		"bytes":    {strings.Repeat("#", maxBytes) + "\n", "more than 4194304 bytes"},
		"type":     {example(t, "name: loadbalancer\n", "name: "+long+"\n", "typeName: loadbalancer\n", "typeName: "+long+"\n", "typeName: loadbalancer\n", "typeName: "+long+"\n"), "257 characters"},
		"prefix":   {example(t, "idntten", long), "257 characters"},
		"relation": {example(t, "relation: owner", "relation: "+long, "relation: owner", "relation: "+long, "relation: owner", "relation: "+long), "257 characters"},
		"action":   {example(t, "actions:\n", "actions:\n  - name: "+long+"\n"), "257 characters"},
		"union":    {example(t, "unions:\n", "unions:\n  - name: "+long+"\n    resourceTypes: [tenant]\n"), "257 characters"},
		"targets":  {bindAllActionsToAllTypes(460, 1), "of at most 200000 here"},
		"ways":     {policyOfMutualActions(60), "of at most 200000 here"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := must(newServer(t).CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: policyOfFile(test.content)}))(t)
			f := got.GetFindings()
			if got.GetOk() || !slices.ContainsFunc(f.GetDiagnostics(), func(d *policyv1.Diagnostic) bool {
				return d.GetCode() == "E-LIMIT" && strings.Contains(d.GetMessage(), test.words) && d.GetHint() != ""
			}) {
				t.Errorf("found %v", f)
			}
		})
	}
	for _, fits := range []string{bindAllActionsToAllTypes(200, 200), policyOfMutualActions(50)} {
		if got := must(newServer(t).CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: policyOfFile(fits)}))(t); !got.GetOk() {
			t.Errorf("what is large but not too large: %v", got)
		}
	}
}

func TestOwnerNameIsBounded(t *testing.T) {
	p := policyOfFile(example(t, "load-balancer-api", "é"+strings.Repeat("é", 100_000)))
	got := must(newServer(t).ExplainAction(t.Context(), &policyv1.ExplainActionRequest{Policy: p, Type: "loadbalancer", Action: "loadbalancer_get"}))(t)
	if owner := got.GetNodes()[0].GetBound().GetOwner(); owner != strings.Repeat("é", maxOwner/2) || len(got.GetText()) > 100*maxOwner {
		t.Errorf("owner of %d bytes, text of %d", len(owner), len(got.GetText()))
	}
}

func TestDiffPoliciesTruncatesChanges(t *testing.T) {
	types := func(n int) *policyv1.Policy {
		return policyOfFile("resourceTypes:\n" + repeated(n, func(i int) string { return fmt.Sprintf("  - {name: t%d, idPrefix: pfx%d}\n", i, i) }))
	}
	got := must(newServer(t).DiffPolicies(t.Context(), &policyv1.DiffPoliciesRequest{Old: types(1500), New: types(1)}))(t)
	if len(got.GetChanges()) != maxListed || !got.GetTruncated() || got.GetTotal() != 1499 || got.GetWorst() != policyv1.Class_CLASS_BREAKING_FOR_DATA {
		t.Errorf("%d of %d changes, %v", len(got.GetChanges()), got.GetTotal(), got.GetWorst())
	}
}

func TestExplainActionTruncatesTree(t *testing.T) {
	for types, whole := range map[int]bool{33: true, 440: false} {
		p := policyOfFile(bindAllActionsToAllTypes(types, 1))
		got := must(newServer(t).ExplainAction(t.Context(), &policyv1.ExplainActionRequest{Policy: p, Type: "type0", Action: word(0)}))(t)
		if len(got.GetNodes()) != maxListed || !got.GetTruncated() || got.GetTotal() <= maxListed {
			t.Fatalf("%d types: %d of %d nodes, truncated %t", types, len(got.GetNodes()), got.GetTotal(), got.GetTruncated())
		}
		for i, n := range got.GetNodes() {
			for _, s := range n.GetSteps() {
				if slices.Max(s.GetTargets()) >= maxListed || len(s.GetTargets())+int(s.GetMore()) != types {
					t.Errorf("%d types, node %d: step to %v and %d more", types, i, s.GetTargets(), s.GetMore())
				}
			}
		}
		size, nodes := len(got.GetText()), strings.Count(got.GetText(), " on type")
		if size > maxText || (nodes == int(got.GetTotal())) != whole || !strings.HasSuffix(got.GetText(), "\n") {
			t.Errorf("%d types: text of %d bytes about %d of %d nodes", types, size, nodes, got.GetTotal())
		}
	}
}

func TestExplainActionOmitsStepsToHiddenNodes(t *testing.T) {
	many := make([]*explain.ActionTree, 2*maxListed)
	for i := range many {
		many[i] = &explain.ActionTree{Type: "tenant"}
	}
	var l flatTree
	l.addSubtree(&explain.ActionTree{Steps: []explain.RelationWay{{Relation: "parent", Targets: many}, {Relation: "owner", Targets: many}}})
	root := l.nodes[0]
	if len(l.nodes) != maxListed || l.total != 1+4*maxListed || len(root.GetSteps()) != 1 || root.GetEnding() != policyv1.Ending_ENDING_CUT {
		t.Errorf("%d of %d nodes, the first with %d steps and %v", len(l.nodes), l.total, len(root.GetSteps()), root.GetEnding())
	}
	if s := root.GetSteps()[0]; len(s.GetTargets()) != maxListed-1 || s.GetMore() != maxListed+1 {
		t.Errorf("a step to %d and %d more", len(s.GetTargets()), s.GetMore())
	}
}

// policyOfManyRelations draws two types with so many relations, along each of which a dozen actions flow.
func policyOfManyRelations(relations int) string {
	long := strings.Repeat("z", 60)
	return "resourceTypes:\n  - {name: head, idPrefix: head}\n  - name: tail\n    idPrefix: tail\n    relationships:\n" +
		repeated(relations, func(i int) string { return "      - {relation: " + word(i) + ", targetTypes: [head]}\n" }) +
		"actions:\n  - name: " + long + "\n" + repeated(12, func(i int) string { return "  - name: do_" + word(i) + "\n" }) +
		"actionBindings:\n  - {actionName: " + long + ", typeName: head, conditions: [roleBinding: {}]}\n" +
		"  - actionName: do_" + word(0) + "\n    typeName: tail\n    conditions: &all\n" +
		repeated(relations, func(i int) string {
			return "      - relationshipAction: {relation: " + word(i) + ", actionName: " + long + "}\n"
		}) +
		repeated(11, func(i int) string {
			return "  - {actionName: do_" + word(i+1) + ", typeName: tail, conditions: *all}\n"
		})
}

func TestPlaceToProtoIsLineOrField(t *testing.T) {
	source := &policy.DocumentSource{File: "policydocument/team/lb"}
	tests := map[string]struct {
		place policy.Place
		want  *policyv1.Place
	}{
		"nowhere": {policy.Place{}, nil},
		"a line":  {policy.Place{File: "a.yaml", Document: 2, Line: 3, Column: 4}, &policyv1.Place{File: "a.yaml", Document: 2, Line: 3, Column: 4}},
		"a field": {source.PlaceAt(source.AddFieldPosition("spec.actions[0]")), &policyv1.Place{File: "policydocument/team/lb", Path: "spec.actions[0]"}},
	}
	for name, test := range tests {
		if got := placeToProto(test.place); !proto.Equal(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSanitizeTextTruncatesAndRepairs(t *testing.T) {
	if got := sanitizeText(strings.Repeat("é", maxMessage)); len(got) > maxMessage+10 || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes end in %q", len(got), got[len(got)-10:])
	}
	if got := sanitizeText("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("got %q", got)
	}
}
