package check_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func TestAllErrorsAreReportedInOrder(t *testing.T) {
	t.Parallel()
	first, places := unmark(`resourceTypes:
- name: foo
  idPrefix: ^fo
  relationships:
  - relation: own
    targetTypes: [^qux, foo]
  - relation: ^own
    targetTypes: [foo]
actions:
- name: get
- name: ^get
actionBindings:
- actionName: ^put
  typeName: ^bar
  conditions:
  - ^{}
- actionName: get
  ^typ: foo
  typeName: foo
  conditions: [{relationshipAction: ^{relation: via, actionName: get}}]
`)
	want := expectation(places, strings.Fields("E-ID-PREFIX E-UNKNOWN-TYPE E-DUP-RELATION E-DUP-ACTION E-UNKNOWN-ACTION E-UNKNOWN-TYPE E-CONDITION E-UNKNOWN-KEY E-UNKNOWN-RELATION"))
	second := "unions: [{name: foo, resourceTypes: [foo]}]\n"
	want += "\nq.yaml:1:17 E-TYPE-IS-UNION"
	for _, all := range [][]syntax.File{files(first, second), {files(first, second)[1], files(first, second)[0]}} {
		if _, found := check.Files(all, syntax.ParseLimits{}, policy.Options{}); summary(found) != want {
			t.Errorf("found\n%s\nwant\n%s", detail(found), want)
		}
	}
}

func TestUnreadableDocumentSuppressesMissingErrors(t *testing.T) {
	t.Parallel()
	const uses = "actionBindings: [{actionName: put, typeName: baz, conditions: [{relationshipAction: {relation: via, actionName: put}}]}]\n"
	for name, test := range map[string]struct{ text, want string }{
		"a document that is not YAML": {uses + "---\nactions: [\n", "E-SYNTAX"},
		"a list that is none":         {uses + "---\nactions: put\n", "E-KIND"},
		"a name that is none":         {"actions: [{name: [put]}]\n", "E-KIND"},
		"what is certain all the same": {
			"resourceTypes: [{name: foo, idPrefix: a}]\n---\nactions: [\n", "E-DUP-TYPE E-ID-PREFIX E-SYNTAX",
		},
		"a key with a typing mistake": {
			"action: [{name: put}]\nactionBindings: [{actionName: put, typeName: foo, conditions: [{roleBinding: {}}]}]", "E-UNKNOWN-KEY",
		},
		"a key with no meaning": {"verbs: [{name: put}]\n" + uses, "E-UNKNOWN-KEY E-UNKNOWN-ACTION E-UNKNOWN-TYPE E-UNKNOWN-ACTION"},
		"a list given twice": {
			"actions: [{name: put}]\nActions: [{name: cut}]\nactionBindings: [{actionName: put, typeName: foo, conditions: [{roleBinding: {}}]}, {actionName: cut, typeName: foo, conditions: [{roleBinding: {}}]}]", "E-DUP-KEY",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, found := check.Files(files(base, test.text), syntax.ParseLimits{}, policy.Options{})
			var codes []string
			for _, d := range found {
				codes = append(codes, string(d.Code))
			}
			if got := strings.Join(codes, " "); got != test.want || p != nil {
				t.Errorf("found\n%swant %s", detail(found), test.want)
			}
		})
	}
}

func TestFindingsAreIndependentOfOrder(t *testing.T) {
	t.Parallel()
	for seed := range policytest.SeedRange(t, 300) {
		random := rand.New(rand.NewPCG(seed, 6))
		documents, _ := syntax.ParseFiles(files(policytest.GeneratePolicy(seed)...), syntax.ParseLimits{})
		damagePolicy(random, documents)
		_, want := check.Documents(documents, policy.Options{Strict: true})
		random.Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
		if _, found := check.Documents(documents, policy.Options{Strict: true}); detail(found) != detail(want) {
			t.Fatalf("found\n%sand before\n%s", detail(found), detail(want))
		}
	}
}

func TestDocumentsOfObjectsFormOnePolicy(t *testing.T) {
	t.Parallel()
	object := func(name, text string) *syntax.Document {
		documents, _ := syntax.ParseFiles(files(text), syntax.ParseLimits{})
		documents[0].Source = &policy.DocumentSource{File: name, Owner: name}
		syntax.SetObjectPositions(documents[0], "spec")
		return documents[0]
	}
	parts := []*syntax.Document{
		object("z/types", "resourceTypes: [{name: foo, idPrefix: foo}]"),
		object("b/actions", "actions: [{name: get}]"),
		object("a/bindings", "actionBindings: [{actionName: get, typeName: foo, conditions: [{roleBinding: {}}]}]"),
	}
	if p, found := check.Documents(parts, policy.Options{}); p == nil || len(found) > 0 {
		t.Fatal(found)
	}
	_, found := check.Documents(append(parts, object("c/again", "actions: [{name: put}, {name: get}]")), policy.Options{})
	if len(found) != 1 || found[0].Place.String() != "c/again: spec.actions[1].name" || found[0].Related[0].Place.String() != "b/actions: spec.actions[0].name" {
		t.Errorf("found\n%s", detail(found))
	}
	_, found = check.Documents(parts[1:], policy.Options{})
	if summary(found) != "E-EMPTY\na/bindings: spec.actionBindings[0].typeName E-UNKNOWN-TYPE" {
		t.Errorf("found\n%s", detail(found))
	}
}

func TestRootCauseIsReportedAlone(t *testing.T) {
	t.Parallel()
	_, found := check.Files([]syntax.File{{Name: "p.yaml", Content: []byte("resourceTypess: []\n")}}, syntax.ParseLimits{}, policy.Options{})
	if len(found) != 1 || found[0].Code != policy.CodeUnknownKey {
		t.Errorf("found %v", found)
	}
}
