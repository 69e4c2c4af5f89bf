package assertion_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/entail-dev/entail/services/entail/internal/assertion"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func subject(t *testing.T) assertion.CompiledPolicy {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "policy", "testdata", "loadbalancer", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents, found := syntax.ParseFiles([]syntax.File{{Name: "policy.yaml", Content: content}}, syntax.ParseLimits{})
	p, more := check.Documents(documents, policy.Options{})
	if found.HasErrors() || more.HasErrors() {
		t.Fatal(found, more)
	}
	document, found := openfga.CompileJSON(p, openfga.Options{})
	if found.HasErrors() {
		t.Fatal(found)
	}
	model := &openfgav1.AuthorizationModel{}
	if err := protojson.Unmarshal(document, model); err != nil {
		t.Fatal(err)
	}
	return assertion.CompiledPolicy{Policy: p, Model: model}
}

const tuples = `
tuples:
  - tenant:child#parent@tenant:root
  - organization:o#parent@tenant:child
  - project:p#parent@organization:o
  - loadbalancer:lb#owner@project:p
  - role:viewer#subject@user:alice
  - tenant:root#loadbalancer_get_role@role:viewer#subject
  - role:maker#subject@user:carol
  - project:p#loadbalancer_create_role@role:maker#subject
`

func run(t *testing.T, assertions string) assertion.Result {
	t.Helper()
	scenarios, err := assertion.ParseScenarios("a.yaml", []byte(tuples+assertions))
	if err != nil {
		t.Fatal(err)
	}
	result, err := assertion.RunScenarios(t.Context(), subject(t), scenarios)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestRunScenariosPassesCorrectAssertions(t *testing.T) {
	result := run(t, `
allow:
  - user:alice loadbalancer_get tenant:root
  - user:alice loadbalancer_get tenant:child
  - user:alice loadbalancer_get organization:o
  - user:alice loadbalancer_get project:p
  - user:alice loadbalancer_get loadbalancer:lb
  - user:carol loadbalancer_create project:p
  - user:carol loadbalancer_create loadbalancer:lb
deny:
  - user:alice loadbalancer_create loadbalancer:lb
  - user:carol loadbalancer_create organization:o
  - user:carol loadbalancer_get loadbalancer:lb
  - user:bob loadbalancer_get loadbalancer:lb
---
name: nothing is left over of another scenario
deny: [user:alice loadbalancer_get tenant:root]
`)
	if result.Passed != 12 || len(result.Failures) != 0 {
		t.Errorf("%d passed; failures: %v", result.Passed, result.FailureLines())
	}
}

func TestFailureHasTrailOfAnswer(t *testing.T) {
	result := run(t, `
name: wrong
allow:
  - user:bob loadbalancer_get project:p
  - user:carol loadbalancer_create tenant:child
deny:
  - user:alice loadbalancer_get project:p
`)
	want := []string{
		"a.yaml:14: wrong: user:bob may not loadbalancer_get on project:p, but is asserted to",
		"    project:p: no role has loadbalancer_get: there is no project:p#loadbalancer_get_role@…",
		"    organization:o: no role has loadbalancer_get: there is no organization:o#loadbalancer_get_role@…",
		"    tenant:child: no role has loadbalancer_get: there is no tenant:child#loadbalancer_get_role@…",
		"    tenant:root: role:viewer has loadbalancer_get, but role:viewer#subject@user:bob is missing",
		"    tenant:root: parent leads nowhere: there is no tenant:root#parent@…",
		"a.yaml:15: wrong: user:carol may not loadbalancer_create on tenant:child, but is asserted to",
		"    tenant:child: no role has loadbalancer_create: there is no tenant:child#loadbalancer_create_role@…",
		"    tenant:root: no role has loadbalancer_create: there is no tenant:root#loadbalancer_create_role@…",
		"    tenant:root: parent leads nowhere: there is no tenant:root#parent@…",
		"a.yaml:17: wrong: user:alice may loadbalancer_get on project:p, but is asserted not to",
		"    project:p: loadbalancer_get if loadbalancer_get of organization:o, its parent",
		"    organization:o: loadbalancer_get if loadbalancer_get of tenant:child, its parent",
		"    tenant:child: loadbalancer_get if loadbalancer_get of tenant:root, its parent",
		"    tenant:root: role:viewer has loadbalancer_get, and user:alice is in it",
	}
	if got := result.FailureLines(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if result.Passed != 0 {
		t.Errorf("%d passed", result.Passed)
	}
}

func TestRunScenariosReportsTooDeepAssertionAlone(t *testing.T) {
	var deep strings.Builder
	for i := range 40 {
		fmt.Fprintf(&deep, "  - tenant:t%d#parent@tenant:t%d\n", i+1, i)
	}
	result := run(t, deep.String()+"deny:\n  - user:bob loadbalancer_get tenant:t40\n  - user:bob loadbalancer_get tenant:root\n")
	if result.Passed != 1 || len(result.Failures) != 1 || !strings.Contains(result.Failures[0].Message, "OpenFGA does not answer whether user:bob may") {
		t.Errorf("%d passed; failures: %v", result.Passed, result.FailureLines())
	}
}

func TestRunScenariosReportsUnknownTypeOrAction(t *testing.T) {
	tests := map[string]struct{ assertions, want string }{
		"an unknown type":             {"deny: [user:a loadbalancer_get lb:x]", `no type "lb": it has loadbalancer, organization`},
		"an unknown action":           {"deny: [user:a loadbalancer_gett loadbalancer:x]", `no action "loadbalancer_gett": it has loadbalancer_create, loadbalancer_get`},
		"no question":                 {"deny: [user:a may loadbalancer_get loadbalancer:x]", "write subject action object"},
		"a subject without a type":    {"deny: [alice loadbalancer_get loadbalancer:x]", "write subject action object"},
		"a tuple of the wrong type":   {"tuples: [project:p#parent@tenant:root]\ndeny: [user:a loadbalancer_get loadbalancer:x]", "project:p#parent@tenant:root"},
		"a role without its subjects": {"tuples: ['tenant:a#loadbalancer_get_role@role:viewer']\ndeny: [user:a loadbalancer_get loadbalancer:x]", "loadbalancer_get_role"},
		"a permission written":        {"tuples: ['tenant:a#loadbalancer_get@user:a']\ndeny: [user:a loadbalancer_get loadbalancer:x]", "loadbalancer_get"},
		"no relationship":             {"tuples: [x]\ndeny: [user:a loadbalancer_get loadbalancer:x]", "write object#relation@user"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scenarios, err := assertion.ParseScenarios("a.yaml", []byte(test.assertions))
			if err != nil {
				t.Fatal(err)
			}
			result, err := assertion.RunScenarios(t.Context(), subject(t), scenarios)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Failures) != 1 || !strings.Contains(result.Failures[0].Message, test.want) || result.Failures[0].Line == 0 {
				t.Errorf("got %+v, want %q", result.Failures, test.want)
			}
		})
	}
}

func TestParseScenariosRefusesInvalidFile(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"empty":           {"", "no assertions"},
		"asserts nothing": {"name: x", "document 1 asserts nothing"},
		"an unknown key":  {"allows: [a]", "allows"},
		"no text":         {"allow: [{a: b}]", "line 1: a text is expected"},
		"no YAML":         {"allow: [", "a.yaml: "},
		"too large":       {strings.Repeat("#", assertion.MaxBytes+1), "too many"},
		"too many lines":  {"allow:\n" + strings.Repeat("- user:a b c:d\n", 20_001), "too much"},
		"an alias bomb": {
			"x: &a [l, l, l, l, l, l, l, l, l]\n" + "allow: *a", "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := assertion.ParseScenarios("a.yaml", []byte(test.content))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
