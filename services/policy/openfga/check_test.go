package openfga

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// one returns a policy with one type and one action.
func one(typ, relation, action string, role bool) string {
	condition := "roleBinding: {}"
	if !role {
		condition = "relationshipAction: {relation: " + relation + ", actionName: " + action + "}"
	}
	return fmt.Sprintf("resourceTypes: [{name: %[1]s, idPrefix: foo, relationships: [{relation: %[2]s, targetTypes: [%[1]s]}]}]\n"+
		"actions: [{name: %[3]s}]\nactionBindings: [{actionName: %[3]s, typeName: %[1]s, conditions: [{%[4]s}]}]\n", typ, relation, action, condition)
}

func TestCheckModelRefusesInvalidModels(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text    string
		options Options
		want    string
	}{
		"nothing special":              {text: one("foo", "own", "get", true)},
		"short names":                  {text: one("f", "o", "ab", true)},
		"type self":                    {text: one("self", "own", "get", true), want: "p.yaml:1:24 E-OPENFGA-KEYWORD"},
		"relation this":                {text: one("foo", "this", "get", true), want: "p.yaml:1:71 E-OPENFGA-KEYWORD"},
		"action define":                {text: one("foo", "own", "define", true), want: "p.yaml:2:18 E-OPENFGA-KEYWORD"},
		"unused action define":         {text: one("foo", "own", "get", true) + "---\nactions: [{name: define}]"},
		"action of 45, by roles":       {text: one("foo", "own", strings.Repeat("a", 45), true)},
		"action of 46, by roles":       {text: one("foo", "own", strings.Repeat("a", 46), true), want: "p.yaml:2:18 E-OPENFGA-NAME"},
		"action of 50, not by roles":   {text: elsewhere(strings.Repeat("a", 50))},
		"action of 51":                 {text: elsewhere(strings.Repeat("a", 51)), want: "p.yaml:2:31 E-OPENFGA-NAME"},
		"relation of 50":               {text: one("foo", strings.Repeat("a", 50), "get", true)},
		"relation of 51":               {text: one("foo", strings.Repeat("a", 51), "get", true), want: "p.yaml:1:71 E-OPENFGA-NAME"},
		"type of 254":                  {text: one(strings.Repeat("a", 254), "own", "get", true)},
		"type of 255":                  {text: one(strings.Repeat("a", 255), "own", "get", true), want: "p.yaml:1:24 E-OPENFGA-NAME"},
		"nobody can have it":           {text: one("foo", "own", "get", false), want: "p.yaml:3:18 E-OPENFGA-NO-ENTRYPOINT"},
		"100 types":                    {text: types(98)},
		"101 types":                    {text: types(99), want: " E-OPENFGA-TYPES"},
		"101 types of more":            {text: types(99), options: Options{MaxTypes: 101}},
		"types without limit":          {text: types(200), options: Options{MaxTypes: -1}},
		"256 KiB":                      {text: string(policytest.LargePolicy(20, 100)), want: " E-OPENFGA-SIZE"},
		"more than 256 KiB":            {text: string(policytest.LargePolicy(20, 100)), options: Options{MaxBytes: 1 << 20}},
		"any number of bytes":          {text: string(policytest.LargePolicy(20, 100)), options: Options{MaxBytes: -1}},
		"schema 1.2":                   {text: one("foo", "own", "get", true), options: Options{SchemaVersion: "1.2"}},
		"schema 1.0":                   {text: one("foo", "own", "get", true), options: Options{SchemaVersion: "1.0"}, want: " E-OPTION"},
		"core module of another name":  {text: one("foo", "own", "get", true), options: Options{CoreModule: "my-core"}},
		"core module that cannot be":   {text: one("foo", "own", "get", true), options: Options{CoreModule: "my core"}, want: " E-OPTION"},
		"core module that is too long": {text: one("foo", "own", "get", true), options: Options{CoreModule: strings.Repeat("a", 51)}, want: " E-OPTION"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := valid(t, test.text)
			found := CheckModel(p, test.options)
			var got []string
			for _, d := range found {
				got = append(got, fmt.Sprintf("%s %s", d.Place, d.Code))
				if d.Hint == "" {
					t.Errorf("%s has no hint", d)
				}
			}
			if strings.Join(got, "\n") != test.want {
				t.Errorf("found %v, want %s", found, test.want)
			}
			for form, compile := range map[string]func(*policy.Policy, Options) ([]byte, policy.Diagnostics){"DSL": CompileDSL, "JSON": CompileJSON} {
				if out, found := compile(p, test.options); (out == nil) != (test.want != "") || found.HasErrors() != (out == nil) {
					t.Errorf("%s has %d bytes, with %v", form, len(out), found)
				}
			}
			if modules, _ := CompileModules(p, test.options); (modules == nil) != (test.want != "") {
				t.Errorf("there are %d modules", len(modules))
			}
		})
	}
}

// elsewhere returns a policy with an action that no role gives on its own type.
func elsewhere(action string) string {
	return fmt.Sprintf("resourceTypes: [{name: foo, idPrefix: foo, relationships: [{relation: own, targetTypes: [bar]}]}, {name: bar, idPrefix: bar}]\n"+
		"actions: [{name: get}, {name: %[1]s}]\nactionBindings: [{actionName: get, typeName: bar, conditions: [{roleBinding: {}}]}, "+
		"{actionName: %[1]s, typeName: foo, conditions: [{relationshipAction: {relation: own, actionName: get}}]}]\n", action)
}

// types returns a policy with n types, and the types of roles and users.
func types(n int) string {
	text := one("foo", "own", "get", true) + "---\nresourceTypes:\n"
	for i := range n - 1 {
		text += fmt.Sprintf("- name: foo%d\n  idPrefix: foo%d\n  relationships: [{relation: own, targetTypes: [foo]}]\n", i, i)
	}
	return text
}

func valid(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, found := check.Files([]syntax.File{{Name: "p.yaml", Content: []byte(text)}}, syntax.ParseLimits{}, policy.Options{})
	if p == nil {
		t.Fatalf("%v in\n%s", found, text)
	}
	return p
}
