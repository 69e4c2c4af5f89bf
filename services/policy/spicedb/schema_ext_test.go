package spicedb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/spicedb"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func valid(t *testing.T, o policy.Options, text string) *policy.Policy {
	t.Helper()
	p, found := check.Files([]syntax.File{{Name: "p.yaml", Content: []byte(text)}}, syntax.ParseLimits{}, o)
	if p == nil {
		t.Fatal(found)
	}
	return p
}

const types = "resourceTypes: [{name: foo, idPrefix: foo, relationships: [{relation: own, targetTypes: [bar]}]}, {name: bar, idPrefix: bar}]\nactions: [{name: get}]\n"

func TestCompileSchemaWritesClausePerCondition(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text    string
		options policy.Options
		target  spicedb.Options
		want    string
	}{
		"a role alone": {
			text: types + "actionBindings: [{actionName: get, typeName: bar, conditions: [{roleBinding: {}}]}]",
			want: "definition infratographer/bar {\n  relation get_role: infratographer/role#subject\n\n  permission get = get_role\n}\n\n" +
				"definition infratographer/foo {\n  relation own: infratographer/bar\n}\n\n" +
				"definition infratographer/role {\n  relation subject: infratographer/user\n}\n\ndefinition infratographer/user {\n}\n",
		},
		"a relation alone": {
			text: types + "actionBindings: [{actionName: get, typeName: bar, conditions: [{roleBinding: {}}]}, " +
				"{actionName: get, typeName: foo, conditions: [{relationshipAction: {relation: own, actionName: get}}]}]",
			options: policy.Options{Partial: true},
			want: "definition infratographer/bar {\n  relation get_role: infratographer/role#subject\n\n  permission get = get_role\n}\n\n" +
				"definition infratographer/foo {\n  relation own: infratographer/bar\n\n  permission get = own->get\n}\n",
		},
		"no role at all": {
			text: "resourceTypes: [{name: foo, idPrefix: foo}]", target: spicedb.Options{Prefix: "bar"}, want: "definition bar/foo {\n}\n",
		},
		"a union and its member are one target": {
			text: "resourceTypes: [{name: foo, idPrefix: foo, relationships: [{relation: own, targetTypes: [u, v, foo]}]}, {name: bar, idPrefix: bar}]\n" +
				"unions: [{name: u, resourceTypes: [foo, bar]}, {name: v, resourceTypes: [bar]}]",
			target: spicedb.Options{Unprefixed: true}, want: "definition bar {\n}\n\ndefinition foo {\n  relation own: bar | foo\n}\n",
		},
		"names of one's own": {
			text:    types + "actionBindings: [{actionName: get, typeName: bar, conditions: [{roleBinding: {}}]}]",
			options: policy.Options{RoleSuffix: "_rel", RoleType: "duty", RoleRelation: "holder", SubjectTypes: []string{"user", "foo"}}, target: spicedb.Options{Unprefixed: true},
			want: "definition bar {\n  relation get_rel: duty#holder\n\n  permission get = get_rel\n}\n\ndefinition duty {\n  relation holder: foo | user\n}\n\n" +
				"definition foo {\n  relation own: bar\n}\n\ndefinition user {\n}\n",
		},
		"a role of the policy": {
			text: types + "---\nresourceTypes: [{name: role, idPrefix: rol, relationships: [{relation: subject, targetTypes: [bar]}]}]\n" +
				"actionBindings: [{actionName: get, typeName: bar, conditions: [{roleBinding: {}}]}]",
			target: spicedb.Options{Unprefixed: true},
			want: "definition bar {\n  relation get_role: role#subject\n\n  permission get = get_role\n}\n\ndefinition foo {\n  relation own: bar\n}\n\n" +
				"definition role {\n  relation subject: bar\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, found := spicedb.CompileSchema(valid(t, test.options, test.text), test.target)
			if string(schema) != test.want || len(found) > 0 {
				t.Errorf("schema is\n%s\nwant\n%s\n%v", schema, test.want, found)
			}
		})
	}
}

func TestCheckSchemaRefusesInvalidPolicies(t *testing.T) {
	t.Parallel()
	one := func(typ, relation, action string) string {
		return fmt.Sprintf("resourceTypes: [{name: %[1]s, idPrefix: foo, relationships: [{relation: %[2]s, targetTypes: [%[1]s]}]}]\n"+
			"actions: [{name: %[3]s}]\nactionBindings: [{actionName: %[3]s, typeName: %[1]s, conditions: [{roleBinding: {}}]}]\n", typ, relation, action)
	}
	a := func(n int) string { return strings.Repeat("a", n) }
	for name, test := range map[string]struct {
		text   string
		target spicedb.Options
		want   string
	}{
		"nothing special":         {text: one("foo", "own", "get")},
		"short type":              {text: one("fo", "own", "get"), want: "p.yaml:1:24 E-SPICEDB-NAME"},
		"short relation":          {text: one("foo", "ow", "get"), want: "p.yaml:1:71 E-SPICEDB-NAME"},
		"short action":            {text: one("foo", "own", "ab"), want: "p.yaml:2:18 E-SPICEDB-NAME"},
		"action that ends in _":   {text: one("foo", "own", "get_"), want: "p.yaml:2:18 E-SPICEDB-NAME"},
		"action with":             {text: one("foo", "own", "with"), want: "p.yaml:2:18 E-SPICEDB-KEYWORD"},
		"action relation":         {text: one("foo", "own", "relation"), want: "p.yaml:2:18 E-SPICEDB-KEYWORD"},
		"action nil":              {text: one("foo", "own", "nil"), want: "p.yaml:2:18 E-SPICEDB-KEYWORD"},
		"action of 59":            {text: one("foo", "own", a(59))},
		"action of 60":            {text: one("foo", "own", a(60)), want: "p.yaml:2:18 E-SPICEDB-NAME"},
		"action of 65":            {text: one("foo", "own", a(65)), want: "p.yaml:2:18 E-SPICEDB-NAME"},
		"unused action of 65":     {text: one("foo", "own", "get") + "---\nactions: [{name: " + a(65) + "}]"},
		"type of 64":              {text: one(a(64), "own", "get")},
		"type of 65":              {text: one(a(65), "own", "get"), want: "p.yaml:1:24 E-SPICEDB-NAME"},
		"long with its prefix":    {text: one(a(64), "own", "get"), target: spicedb.Options{Prefix: a(63)}},
		"too long with it":        {text: one(a(64), "own", "get"), target: spicedb.Options{Prefix: a(60) + "/bar"}, want: "p.yaml:1:24 E-SPICEDB-NAME"},
		"prefix that cannot be":   {text: one("foo", "own", "get"), target: spicedb.Options{Prefix: "a"}, want: " E-OPTION"},
		"prefix of empty parts":   {text: one("foo", "own", "get"), target: spicedb.Options{Prefix: "foo//bar"}, want: " E-OPTION"},
		"more than 4 MiB":         {text: string(policytest.LargePolicyByUnion(500, 100)), want: " E-SPICEDB-SIZE"},
		"more than that, allowed": {text: string(policytest.LargePolicyByUnion(500, 100)), target: spicedb.Options{MaxBytes: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, found := spicedb.CompileSchema(valid(t, policy.Options{}, test.text), test.target)
			var got []string
			for _, d := range found {
				got = append(got, fmt.Sprintf("%s %s", d.Place, d.Code))
				if d.Hint == "" {
					t.Errorf("%s has no hint", d)
				}
			}
			if strings.Join(got, "\n") != test.want || (schema == nil) != (test.want != "") {
				t.Errorf("found %v with %d bytes, want %s", found, len(schema), test.want)
			}
		})
	}
}
