package format_test

import (
	"os"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/format"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func TestSourceHasOneFormat(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"keys, order and style": {
			"ACTIONS: [{name: get}]\nresourcetypes:\n    - {idprefix: 'foo', NAME: \"foo\", relationships: [{targettypes: [foo, {name: bar}], relation: own}]}\n",
			"resourceTypes:\n  - name: foo\n    idPrefix: foo\n    relationships:\n      - relation: own\n        targetTypes:\n          - name: foo\n          - name: bar\nactions:\n  - name: get\n",
		},
		"conditions": {
			"actionBindings:\n- conditions:\n  - relationshipAction: {actionName: get, relation: own}\n  - roleBinding: { }\n  typeName: foo\n  actionName: get\n",
			"actionBindings:\n  - actionName: get\n    typeName: foo\n    conditions:\n      - relationshipAction:\n          relation: own\n          actionName: get\n      - roleBinding: {}\n",
		},
		"members by their other key": {
			"unions: [{name: u, resourceTypeNames: foo}]\n", "unions:\n  - name: u\n    resourceTypes:\n      - name: foo\n",
		},
		"texts that are no texts without quotes": {
			"resourceTypes: [{name: \"null\", idPrefix: '123'}]\n", "resourceTypes:\n  - name: \"null\"\n    idPrefix: \"123\"\n",
		},
		"documents and who provides them": {
			"# Provided by foo\nactions: []\n---\n---\n# Provided by bar\n\nunions: []\n", "# Provided by foo\nactions: []\n---\n# Provided by bar\nunions: []\n",
		},
		"comments": {
			"# top\nactions: # all\n# first\n- name: get # one\n# second\n- name: put\n# end\n",
			"# top\nactions: # all\n  # first\n  - name: get # one\n  # second\n  - name: put\n# end\n",
		},
		"comments after brackets": {
			"actions: [{name: get}] # all\nunions: # all unions\n- {name: u, resourceTypes: [a]} # first\n- name: v # second\n  resourceTypes: [a, b] # both\n" +
				"- name: w\n  resourceTypes: [] # none\n- {name: x, # last\n   resourceTypes: [a, # one\n    b]}\n",
			"unions: # all unions\n  # first\n  - name: u\n    resourceTypes:\n      - name: a\n  - name: v # second\n    resourceTypes: # both\n" +
				"      - name: a\n      - name: b\n  - name: w\n    resourceTypes: [] # none\n  - name: x # last\n    resourceTypes:\n      - name: a # one\n      - name: b\n" +
				"actions: # all\n  - name: get\n",
		},
		"anchors": {
			"unions:\n- name: u\n  resourceTypes: &all [foo]\n- {name: v, resourceTypes: *all}\n",
			"unions:\n  - name: u\n    resourceTypes: &all\n      - name: foo\n  - name: v\n    resourceTypes: *all\n",
		},
		"nothing but comments": {"# nothing\n", "# nothing\n"},
		"a comment after brackets of several lines": {
			"actions: [{name: get},\n  {name: put}] # after lines\nunions: []\n",
			"unions: []\nactions: # after lines\n  - name: get\n  - name: put\n",
		},
		"a comment after a value in brackets": {
			"resourceTypes:\n- name: foo\n  relationships: [{relation: own, targetTypes: [foo]}] # owners of foo\n- name: bar\n",
			"resourceTypes:\n  - name: foo\n    relationships: # owners of foo\n      - relation: own\n        targetTypes:\n          - name: foo\n  - name: bar\n",
		},
		"a document of comments": {
			"actions:\n- name: aa\n---\n# why the next is not here yet\n---\nresourceTypes:\n- {name: foo, idPrefix: foo}\n",
			"actions:\n  - name: aa\n---\n# why the next is not here yet\n---\nresourceTypes:\n  - name: foo\n    idPrefix: foo\n",
		},
		"a first and a last document of comments": {
			"---\n# first\n---\nactions: []\n---\n# last\n", "---\n# first\n---\nactions: []\n---\n# last\n",
		},
		"comments at the end of lists": {
			"resourceTypes:\n- name: foo\n  idPrefix: foo\n  # of foo\nactions:\n  - name: get\n  # no more actions\nunions: [ # none\n  # yet\n  ]\n",
			"resourceTypes:\n  - name: foo\n    idPrefix: foo\n    # of foo\n# yet\nunions: [] # none\nactions:\n  - name: get\n  # no more actions\n",
		},
		"what is no comment": {
			"actions:\n- name: 'a#b' # it's one\n- name: \"a # b\"\n- name: a#c\n",
			"actions:\n  - name: \"a#b\" # it's one\n  - name: \"a # b\"\n  - name: \"a#c\"\n",
		},
		"metadata of a manifest": {
			"apiVersion: iapl.infratographer.com/v1alpha1\nkind: PolicyDocument\nmetadata:\n  name: foo # foo's\n  annotations:\n    b/c: some words\n    a: |\n      one\n      two\n    # last\n" +
				"spec: {actions: [{name: get}], storeRef: {name: demo}}\n",
			"apiVersion: iapl.infratographer.com/v1alpha1\nkind: PolicyDocument\nmetadata:\n  name: foo # foo's\n  annotations:\n    b/c: some words\n    a: |\n      one\n      two\n    # last\n" +
				"spec:\n  storeRef:\n    name: demo\n  actions:\n    - name: get\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, found := format.Source(syntax.File{Name: "p.yaml", Content: []byte(test.text)})
			if string(out) != test.want || len(found) > 0 {
				t.Errorf("got\n%s\nwant\n%s\n%v", out, test.want, found)
			}
		})
	}
}

func TestExampleIsFormattedExceptCase(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../testdata/loadbalancer/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out, found := format.Source(syntax.File{Name: "p.yaml", Content: text})
	if want := strings.ReplaceAll(string(text), "targettypes", "targetTypes"); string(out) != want || len(found) > 0 {
		t.Errorf("got\n%s\n%v", out, found)
	}
}

func TestSourceIsIdempotent(t *testing.T) {
	t.Parallel()
	for seed := range policytest.SeedRange(t, 300) {
		for _, text := range policytest.GeneratePolicy(seed) {
			once, found := format.Source(syntax.File{Content: []byte(text)})
			if found.HasErrors() {
				t.Fatalf("%v in\n%s", found, text)
			}
			if twice, _ := format.Source(syntax.File{Content: once}); string(twice) != string(once) {
				t.Fatalf("formatted\n%s\nand again\n%s", once, twice)
			}
		}
	}
}

func TestSourceRefusesErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]policy.Code{
		"actions: [\n": policy.CodeSyntax, "action: []\n": policy.CodeUnknownKey, "- a\n": policy.CodeKind,
		"unions: [{resourceTypes: &a [foo], name: u}, {name: &b v, resourceTypes: *a}, {resourceTypes: [*b], name: &b w}]\n": policy.CodeFormat,
	} {
		out, found := format.Source(syntax.File{Name: "p.yaml", Content: []byte(text)})
		if out != nil || len(found) == 0 || found[0].Code != want || found[0].Hint == "" {
			t.Errorf("%q gives %q with %v, want %s", text, out, found, want)
		}
	}
}
