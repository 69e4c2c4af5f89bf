package lint_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/lint"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func lintText(t *testing.T, text string) string {
	t.Helper()
	p, found := check.Files([]syntax.File{{Name: "p.yaml", Content: []byte(text)}}, syntax.ParseLimits{}, policy.Options{})
	if p == nil {
		t.Fatal(found)
	}
	var lines []string
	for _, d := range lint.Policy(p) {
		if d.Severity != policy.Warning || d.Hint == "" {
			t.Errorf("%v is no warning with a hint", d)
		}
		lines = append(lines, d.String())
	}
	return strings.Join(lines, "\n")
}

func TestPolicyReportsEachWarning(t *testing.T) {
	t.Parallel()
	const foo = "resourceTypes: [{name: foo, idPrefix: foo}]\n"
	roles := func(action string, types ...string) string {
		var bindings []string
		for _, on := range types {
			bindings = append(bindings, "{actionName: "+action+", typeName: "+on+", conditions: [{roleBinding: {}}]}")
		}
		return "actionBindings: [" + strings.Join(bindings, ", ") + "]\n"
	}
	var many strings.Builder
	many.WriteString("resourceTypes:\n")
	for i := range 81 {
		fmt.Fprintf(&many, "- {name: foo%d, idPrefix: foo%d}\n", i, i)
	}
	for name, test := range map[string]struct{ text, want string }{
		"nothing special": {text: foo + "actions: [{name: get}]\n" + roles("get", "foo")},
		"union of one": {
			text: foo + "unions: [{name: u, resourceTypes: [foo]}]\nactions: [{name: get}]\n" + roles("get", "u"), want: `p.yaml:2:17: W-ONE-MEMBER-UNION union "u" has one member`,
		},
		"long action": {
			text: foo + "actions: [{name: " + strings.Repeat("a", 41) + "}]\n" + roles(strings.Repeat("a", 41), "foo"), want: "p.yaml:2:18: W-NEAR-LIMIT",
		},
		"many types": {text: many.String(), want: "W-NEAR-LIMIT the policy has 81 types"},
		"the same on three types": {
			text: "resourceTypes: [{name: foo, idPrefix: foo}, {name: bar, idPrefix: bar}, {name: baz, idPrefix: baz}]\nactions: [{name: get}]\n" + roles("get", "foo", "bar", "baz"),
			want: `p.yaml:3:85: W-REPEATED-BINDING action "get" is bound with the same conditions to bar, baz, foo`,
		},
		"the same on two types": {
			text: "resourceTypes: [{name: foo, idPrefix: foo}, {name: bar, idPrefix: bar}]\nactions: [{name: get}]\n" + roles("get", "foo", "bar"),
		},
		"a verb that one noun lacks": {
			text: foo + "actions: [{name: a_get}, {name: b_get}, {name: c_get}, {name: d_put}, {name: a_put}]\n", want: `p.yaml:2:63: W-VERBS there is "d_put", but no d_get as most others have`,
		},
		"types that lead to each other": {
			text: "resourceTypes: [{name: foo, idPrefix: foo, relationships: [{relation: down, targetTypes: [bar]}]}, " +
				"{name: bar, idPrefix: bar, relationships: [{relation: back, targetTypes: [foo]}, {relation: idle, targetTypes: [bar]}]}]\nactions: [{name: get}]\n" +
				"actionBindings: [{actionName: get, typeName: foo, conditions: [{roleBinding: {}}, {relationshipAction: {relation: down, actionName: get}}]}, " +
				"{actionName: get, typeName: bar, conditions: [{relationshipAction: {relation: back, actionName: get}}]}]\n",
			want: `p.yaml:1:71: W-DEEP-RECURSION relation "down" of "foo" can lead through "bar"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lintText(t, test.text)
			if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestPolicyWarnsOfRecursionInExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../testdata/loadbalancer/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const want = `p.yaml:6:19: W-DEEP-RECURSION relation "parent" of "tenant" can lead through "tenant" to ever more objects of its own type`
	if got := lintText(t, string(text)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
