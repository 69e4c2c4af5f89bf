package policy

import (
	"context"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func TestCompilePolicyEqualsLibrary(t *testing.T) {
	modules := func(name string) string { return golden(t, "modules/"+name) }
	tests := map[policyv1.Target]map[string]string{
		policyv1.Target_TARGET_SPICEDB:      {"schema.zed": golden(t, "schema.zed")},
		policyv1.Target_TARGET_OPENFGA_DSL:  {"model.fga": golden(t, "model.fga")},
		policyv1.Target_TARGET_OPENFGA_JSON: {"model.json": golden(t, "model.json")},
		policyv1.Target_TARGET_OPENFGA_MODULES: {
			"fga.mod": modules("fga.mod"), "core.fga": modules("core.fga"), "enterprise-api.fga": modules("enterprise-api.fga"),
			"load-balancer-api.fga": modules("load-balancer-api.fga"), "tenant-api.fga": modules("tenant-api.fga"),
		},
	}
	for target, want := range tests {
		t.Run(target.String(), func(t *testing.T) {
			got := must(newServer(t).CompilePolicy(t.Context(), &policyv1.CompilePolicyRequest{Policy: policyOfFile(example(t)), Target: target}))(t)
			if len(got.GetArtifacts()) != len(want) {
				t.Errorf("%d artifacts", len(got.GetArtifacts()))
			}
			for _, a := range got.GetArtifacts() {
				if a.GetContent() != want[a.GetName()] {
					t.Errorf("%s is\n%s\nwant\n%s", a.GetName(), a.GetContent(), want[a.GetName()])
				}
			}
		})
	}
}

func TestCompilePolicyUsesSpiceDBPrefix(t *testing.T) {
	request := &policyv1.CompilePolicyRequest{Policy: policyOfFile(example(t)), Target: policyv1.Target_TARGET_SPICEDB}
	for want, set := range map[string]func(){
		"definition infratographer/tenant {": func() {},
		"definition acme/tenant {":           func() { request.SpicedbPrefix = "acme" },
		"definition tenant {":                func() { request.SpicedbPrefix, request.SpicedbUnprefixed = "", true },
	} {
		request.SpicedbPrefix, request.SpicedbUnprefixed = "", false
		set()
		got := must(newServer(t).CompilePolicy(t.Context(), request))(t)
		if content := got.GetArtifacts()[0].GetContent(); !strings.Contains(content, want) {
			t.Errorf("no %q in\n%s", want, content)
		}
	}
	_, err := newServer(t).CompilePolicy(t.Context(), &policyv1.CompilePolicyRequest{Policy: policyOfStore("demo"), SpicedbPrefix: "UP"})
	expectRefused(t, err, connect.CodeInvalidArgument, "prefix")
	_, err = newServer(t).CompilePolicy(t.Context(), &policyv1.CompilePolicyRequest{Policy: policyOfStore("demo"), Target: 99})
	expectRefused(t, err, connect.CodeInvalidArgument, "no target 99")
}

// unending binds an action that only its own holders can get.
const unending = `---
resourceTypes:
  - name: cloud
    idPrefix: cld
    relationships:
      - relation: self
        targetTypes: [cloud]
actions:
  - name: cloud_stop
actionBindings:
  - actionName: cloud_stop
    typeName: cloud
    conditions:
      - relationshipAction: {relation: self, actionName: cloud_stop}
`

func TestCompilePolicyReportsEngineRefusal(t *testing.T) {
	p := policyOfFile(example(t) + unending)
	for target, want := range map[policyv1.Target]int{policyv1.Target_TARGET_SPICEDB: 1, policyv1.Target_TARGET_OPENFGA_DSL: 0, policyv1.Target_TARGET_OPENFGA_MODULES: 0} {
		got := must(newServer(t).CompilePolicy(t.Context(), &policyv1.CompilePolicyRequest{Policy: p, Target: target}))(t)
		found := codes(got.GetFindings())
		if len(got.GetArtifacts()) != want || slices.Contains(found, "E-OPENFGA-NO-ENTRYPOINT") == (want > 0) || !slices.Contains(found, "W-NEVER-GRANTED") {
			t.Errorf("%v: %d artifacts, %v", target, len(got.GetArtifacts()), got.GetFindings())
		}
	}
}

func TestDiffPoliciesReturnsWorstClass(t *testing.T) {
	const way = "      - relationshipAction:\n          relation: owner\n          actionName: loadbalancer_get\n"
	tests := map[string]struct {
		edits []string
		there policyv1.Class
		back  policyv1.Class
		first string
	}{
		"nothing":      {[]string{"# Provided by tenant-api", "# Provided by nobody"}, policyv1.Class_CLASS_NONE, policyv1.Class_CLASS_NONE, ""},
		"a way less":   {[]string{way, ""}, policyv1.Class_CLASS_NARROWING, policyv1.Class_CLASS_WIDENING, "condition loadbalancer loadbalancer_get"},
		"another id":   {[]string{"idntten", "another"}, policyv1.Class_CLASS_BREAKING_FOR_IDS, policyv1.Class_CLASS_BREAKING_FOR_IDS, "idPrefix tenant another"},
		"a type more":  {[]string{"resourceTypes:\n", "resourceTypes:\n  - name: cloud\n    idPrefix: cld\n"}, policyv1.Class_CLASS_HARMLESS, policyv1.Class_CLASS_BREAKING_FOR_DATA, "type cloud cloud"},
		"an id and it": {[]string{"idntten", "another", way, ""}, policyv1.Class_CLASS_BREAKING_FOR_IDS, policyv1.Class_CLASS_BREAKING_FOR_IDS, "idPrefix tenant another"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := policyOfFile(example(t)), policyOfFile(example(t, test.edits...))
			got := must(newServer(t).DiffPolicies(t.Context(), &policyv1.DiffPoliciesRequest{Old: before, New: after}))(t)
			if got.GetWorst() != test.there || got.GetTotal() != int32(len(got.GetChanges())) || got.GetTruncated() {
				t.Errorf("there: %v", got)
			}
			back := must(newServer(t).DiffPolicies(t.Context(), &policyv1.DiffPoliciesRequest{Old: after, New: before}))(t)
			if back.GetWorst() != test.back {
				t.Errorf("back: %v", back)
			}
			if test.first == "" {
				return
			}
			c := got.GetChanges()[0]
			if is := strings.Join([]string{c.GetWhat(), c.GetType(), c.GetName()}, " "); !strings.HasPrefix(is, test.first) || c.GetClass() != test.there ||
				c.GetMessage() == "" || c.GetOld().GetLine()+c.GetNew().GetLine() == 0 {
				t.Errorf("the first is %v", c)
			}
		})
	}
}

func TestDiffPoliciesWithEmptyStore(t *testing.T) {
	s := New(func(context.Context, string, bool) ([]*syntax.Document, policy.Options, error) {
		return nil, policy.Options{}, nil
	})
	beside := policyOfFile(example(t))
	beside.Beside = "demo"
	got := must(s.DiffPolicies(t.Context(), &policyv1.DiffPoliciesRequest{Old: policyOfStore("demo"), New: beside}))(t)
	if got.GetWorst() != policyv1.Class_CLASS_HARMLESS || got.GetTotal() == 0 || got.GetOldFindings().GetTotal() != 0 {
		t.Errorf("got %v", got)
	}
}

func TestRequestOptionsOverrideStore(t *testing.T) {
	p := policyOfStore("demo")
	p.Options = &policyv1.Options{RoleRelation: "holder"}
	got := must(newServer(t).ExplainAction(t.Context(), &policyv1.ExplainActionRequest{Policy: p, Type: "loadbalancer", Action: "loadbalancer_get"}))(t)
	if holder := got.GetNodes()[0].GetRole().GetHolder(); holder != "role#holder" {
		t.Errorf("roles are held by %s", holder)
	}
}

func TestExplainActionReturnsTree(t *testing.T) {
	got := must(newServer(t).ExplainAction(t.Context(), &policyv1.ExplainActionRequest{
		Policy: policyOfStore("demo"), Type: "loadbalancer", Action: "loadbalancer_get",
	}))(t)
	nodes := got.GetNodes()
	root := nodes[0]
	if root.GetType() != "loadbalancer" || root.GetRole().GetRelation() != "loadbalancer_get_role" || root.GetRole().GetHolder() != "role#assignee" ||
		root.GetBound().GetOwner() != "load-balancer-api" || root.GetBound().GetPlace().GetFile() != "policydocument/team/lb" || root.GetNeverGranted() {
		t.Errorf("the action in question: %v", root)
	}
	var types []string
	for _, i := range root.GetSteps()[0].GetTargets() {
		types = append(types, nodes[i].GetType()+" "+nodes[i].GetOn()+" "+nodes[i].GetEnding().String())
	}
	want := []string{"organization resourceowner ENDING_UNSPECIFIED", "project resourceowner ENDING_UNSPECIFIED", "tenant resourceowner ENDING_ABOVE"}
	if !slices.Equal(types, want) || root.GetSteps()[0].GetRelation() != "owner" || root.GetSteps()[0].GetDeclared().GetOwner() != "load-balancer-api" {
		t.Errorf("one step from it: %q", types)
	}
	named := map[int32]int{}
	for _, n := range nodes {
		for _, s := range n.GetSteps() {
			for _, i := range s.GetTargets() {
				named[i]++
			}
		}
	}
	for i := range int32(len(nodes)) {
		if want := min(int(i), 1); named[i] != want {
			t.Errorf("node %d is named %d times", i, named[i])
		}
	}
	if got.GetTotal() != int32(len(nodes)) || got.GetTruncated() || !strings.HasPrefix(got.GetText(), "loadbalancer_get on loadbalancer") ||
		!slices.ContainsFunc(nodes, func(n *policyv1.Node) bool { return n.GetEnding() == policyv1.Ending_ENDING_RECURSION }) {
		t.Errorf("got %v", got)
	}
}

func TestExplainActionSuggestsNames(t *testing.T) {
	for words, r := range map[string]*policyv1.ExplainActionRequest{
		"did you mean loadbalancer?":                        {Type: "loadbalancr", Action: "loadbalancer_get"},
		"did you mean loadbalancer_get?":                    {Type: "tenant", Action: "loadbalancer_gt"},
		"is a union: name one of its types: organization, ": {Type: "resourceowner", Action: "loadbalancer_get"},
	} {
		r.Policy = policyOfStore("demo")
		_, err := newServer(t).ExplainAction(t.Context(), r)
		expectRefused(t, err, connect.CodeNotFound, words)
	}
}

func TestGraphPolicyRendersEveryFormat(t *testing.T) {
	for format, want := range map[policyv1.Format]string{
		policyv1.Format_FORMAT_SVG: "<svg", policyv1.Format_FORMAT_DOT: "digraph", policyv1.Format_FORMAT_MERMAID: "flowchart",
	} {
		got := must(newServer(t).GraphPolicy(t.Context(), &policyv1.GraphPolicyRequest{Policy: policyOfStore("demo"), Format: format}))(t)
		if !strings.HasPrefix(got.GetContent(), want) || !strings.Contains(got.GetContent(), "loadbalancer_create") {
			t.Errorf("%v is\n%s", format, got.GetContent())
		}
	}
	_, err := newServer(t).GraphPolicy(t.Context(), &policyv1.GraphPolicyRequest{Policy: policyOfStore("demo"), Format: 99})
	expectRefused(t, err, connect.CodeInvalidArgument, "no format 99")
}

func TestGraphPolicyFilters(t *testing.T) {
	for gone, r := range map[string]*policyv1.GraphPolicyRequest{
		`"project"`:           {Types: "^tenant$"},
		"loadbalancer_create": {Actions: "_get$"},
		`"loadbalancer"`:      {Owners: "^tenant-api$"},
		`"tenant" [`:          {Focus: "project"},
		`"organization"`:      {Collapse: "^enterprise"},
	} {
		r.Policy, r.Format = policyOfStore("demo"), policyv1.Format_FORMAT_DOT
		got := must(newServer(t).GraphPolicy(t.Context(), r))(t)
		if !strings.HasPrefix(got.GetContent(), "digraph") || strings.Contains(got.GetContent(), gone) {
			t.Errorf("there is %s in\n%s", gone, got.GetContent())
		}
	}
	for field, r := range map[string]*policyv1.GraphPolicyRequest{"types: ": {Types: "("}, "actions: ": {Actions: "["}, "owners: ": {Owners: "*"}, "collapse: ": {Collapse: "+"}} {
		_, err := newServer(t).GraphPolicy(t.Context(), r)
		expectRefused(t, err, connect.CodeInvalidArgument, field+"error parsing regexp")
	}
	_, err := newServer(t).GraphPolicy(t.Context(), &policyv1.GraphPolicyRequest{Policy: policyOfStore("demo"), Format: policyv1.Format_FORMAT_DOT, Focus: "nobody"})
	expectRefused(t, err, connect.CodeNotFound, `focus: there is no type "nobody"`)
}

func TestFormatPolicy(t *testing.T) {
	files := &policyv1.Files{Files: []*policyv1.File{
		{Name: "a.yaml", Content: []byte("# ours\nresourcetypes: [{name: foo, IDPrefix: foo}]\n")},
		{Name: "b.yaml", Content: []byte("actions:\n  - name: get\n")},
	}}
	got := must(newServer(t).FormatPolicy(t.Context(), &policyv1.FormatPolicyRequest{Files: files}))(t)
	if a := got.GetArtifacts(); len(a) != 2 || a[0].GetName() != "a.yaml" || a[0].GetContent() != "# ours\nresourceTypes:\n  - name: foo\n    idPrefix: foo\n" ||
		a[1].GetContent() != "actions:\n  - name: get\n" {
		t.Errorf("formatted are %v", a)
	}
	files.Files[1].Content = []byte("acts: []\n")
	got = must(newServer(t).FormatPolicy(t.Context(), &policyv1.FormatPolicyRequest{Files: files}))(t)
	if len(got.GetArtifacts()) != 0 || !slices.Equal(codes(got.GetFindings()), []string{"E-UNKNOWN-KEY"}) {
		t.Errorf("with a key that is wrong: %v", got)
	}
}
