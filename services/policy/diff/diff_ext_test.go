package diff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/diff"
	"github.com/entail-dev/entail/services/policy/syntax"
)

const base = `
resourceTypes:
  - name: tenant
    idPrefix: ten
    relationships:
      - relation: parent
        targetTypes: [tenant]
  - name: project
    idPrefix: prj
    relationships:
      - relation: parent
        targetTypes: [tenant]
      - relation: friend
        targetTypes: [tenant]
actions:
  - name: view
  - name: edit
actionBindings:
  - actionName: view
    typeName: tenant
    conditions:
      - roleBinding: {}
  - actionName: view
    typeName: project
    conditions:
      - roleBinding: {}
      - relationshipAction: {relation: parent, actionName: view}
`

func parse(t *testing.T, o policy.Options, documents ...string) *policy.Policy {
	t.Helper()
	var files []syntax.File
	for i, d := range documents {
		files = append(files, syntax.File{Name: fmt.Sprintf("%d.yaml", i), Content: []byte(d)})
	}
	p, found := check.Files(files, syntax.ParseLimits{}, o)
	if p == nil {
		t.Fatalf("%v in\n%s", found, strings.Join(documents, "\n---\n"))
	}
	return p
}

// edit replaces the only occurrence of each odd text by the even one after it.
func edit(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		if strings.Count(text, pair[0]) != 1 {
			t.Fatalf("%q stands %d times in\n%s", pair[0], strings.Count(text, pair[0]), text)
		}
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	return text
}

func summary(changes []diff.PolicyChange) []string {
	lines := make([]string, 0, len(changes))
	for _, c := range changes {
		lines = append(lines, strings.Join([]string{string(c.Class), string(c.What), c.Type, c.Name}, " | "))
	}
	return lines
}

func TestEveryEditAndItsInverseHaveClass(t *testing.T) {
	t.Parallel()
	const viewOfProject = `
  - actionName: view
    typeName: project
    conditions:
      - roleBinding: {}
      - relationshipAction: {relation: parent, actionName: view}
`
	for name, test := range map[string]struct {
		edits        []string
		there, after []string
	}{
		"type": {
			edits: []string{"actions:\n", "  - name: cloud\n    idPrefix: cld\nactions:\n"},
			there: []string{"harmless | type | cloud | cloud"},
			after: []string{"breaking-for-data | type | cloud | cloud"},
		},
		"id prefix": {
			edits: []string{"idPrefix: prj", "idPrefix: project"},
			there: []string{"breaking-for-ids | idPrefix | project | project"},
			after: []string{"breaking-for-ids | idPrefix | project | prj"},
		},
		"relation": {
			edits: []string{"      - relation: friend\n", "      - relation: owner\n        targetTypes: [tenant]\n      - relation: friend\n"},
			there: []string{"harmless | relation | project | owner"},
			after: []string{"breaking-for-data | relation | project | owner"},
		},
		"target that a condition follows": {
			edits: []string{"parent\n        targetTypes: [tenant]\n      - relation: friend", "parent\n        targetTypes: [tenant, project]\n      - relation: friend"},
			there: []string{"widening | target | project | parent: project"},
			after: []string{"breaking-for-data | target | project | parent: project"},
		},
		"target that nothing follows": {
			edits: []string{"friend\n        targetTypes: [tenant]", "friend\n        targetTypes: [tenant, project]"},
			there: []string{"harmless | target | project | friend: project"},
			after: []string{"breaking-for-data | target | project | friend: project"},
		},
		"action": {
			edits: []string{"  - name: edit\n", "  - name: edit\n  - name: remove\n"},
			there: []string{"harmless | action |  | remove"},
			after: []string{"harmless | action |  | remove"},
		},
		"binding by role": {
			edits: []string{viewOfProject, viewOfProject + "  - {actionName: edit, typeName: project, conditions: [roleBinding: {}]}\n"},
			there: []string{"widening | binding | project | edit"},
			after: []string{"breaking-for-data | binding | project | edit"},
		},
		"binding by relation": {
			edits: []string{viewOfProject, viewOfProject + "  - actionName: edit\n    typeName: project\n    conditions:\n      - relationshipAction: {relation: friend, actionName: view}\n"},
			there: []string{"widening | binding | project | edit"},
			after: []string{"narrowing | binding | project | edit"},
		},
		"condition by relation": {
			edits: []string{viewOfProject, viewOfProject + "      - relationshipAction: {relation: friend, actionName: view}\n"},
			there: []string{"widening | condition | project | view: friend->view"},
			after: []string{"narrowing | condition | project | view: friend->view"},
		},
		"condition by role": {
			edits: []string{viewOfProject, strings.Replace(viewOfProject, "      - roleBinding: {}\n", "", 1)},
			there: []string{"breaking-for-data | condition | project | view: role binding in view_role"},
			after: []string{"widening | condition | project | view: role binding in view_role"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, q := parse(t, policy.Options{}, base), parse(t, policy.Options{}, edit(t, base, test.edits...))
			if got := summary(diff.Policies(p, q)); !slices.Equal(got, test.there) {
				t.Errorf("edit: got %q, want %q", got, test.there)
			}
			if got := summary(diff.Policies(q, p)); !slices.Equal(got, test.after) {
				t.Errorf("undone: got %q, want %q", got, test.after)
			}
		})
	}
}

func TestEquivalentPoliciesDoNotDiffer(t *testing.T) {
	t.Parallel()
	types, rest, _ := strings.Cut(base, "actions:\n")
	union := edit(t, base,
		"actionBindings:\n", "unions:\n  - {name: place, resourceTypes: [tenant, project]}\nactionBindings:\n",
		"    conditions:\n      - roleBinding: {}\n  - actionName", "    conditions:\n      - relationshipAction: {relation: parent, actionName: view}\n      - roleBinding: {}\n  - actionName")
	direct := edit(t, base, "    conditions:\n      - roleBinding: {}\n  - actionName",
		"    conditions:\n      - relationshipAction: {relation: parent, actionName: view}\n      - roleBinding: {}\n  - actionName")
	byUnion, _, _ := strings.Cut(union, "  - actionName: view\n    typeName: project")
	for name, test := range map[string]struct{ before, after []string }{
		"the same":               {[]string{base}, []string{base}},
		"split into files":       {[]string{base}, []string{"actions:\n" + rest, types}},
		"comments":               {[]string{base}, []string{"# Provided by somebody\n" + base}},
		"order":                  {[]string{base}, []string{edit(t, base, "  - name: view\n  - name: edit\n", "  - name: edit\n  - name: view\n")}},
		"a union that is unused": {[]string{direct}, []string{union}},
		"a union for its members": {
			[]string{direct}, []string{edit(t, byUnion, "typeName: tenant", "typeName: place")},
		},
		"roles and subjects that are declared": {
			[]string{base}, []string{base, "resourceTypes:\n- {name: role, idPrefix: rol, relationships: [{relation: subject, targetTypes: [user]}]}\n- {name: user, idPrefix: usr}\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, q := parse(t, policy.Options{}, test.before...), parse(t, policy.Options{}, test.after...)
			if changes := slices.Concat(diff.Policies(p, q), diff.Policies(q, p)); len(changes) > 0 {
				t.Errorf("got\n%s", diff.RenderText(changes))
			}
		})
	}
}

func TestUnionMemberChangeAffectsAllUses(t *testing.T) {
	t.Parallel()
	const document = `
resourceTypes:
  - {name: a, idPrefix: aaa}
  - {name: b, idPrefix: bbb}
  - {name: c, idPrefix: ccc, relationships: [{relation: owner, targetTypes: [some]}]}
unions: [{name: some, resourceTypes: [a]}]
actions: [name: view]
actionBindings:
  - {actionName: view, typeName: some, conditions: [roleBinding: {}]}
  - {actionName: view, typeName: c, conditions: [relationshipAction: {relation: owner, actionName: view}]}
`
	p := parse(t, policy.Options{}, document)
	q := parse(t, policy.Options{}, edit(t, document, "resourceTypes: [a]", "resourceTypes: [a, b]"))
	for name, test := range map[string]struct {
		before, after *policy.Policy
		want          []string
	}{
		"added": {p, q, []string{"widening | binding | b | view", "widening | target | c | owner: b", "harmless | union |  | some: b"}},
		"gone":  {q, p, []string{"breaking-for-data | binding | b | view", "breaking-for-data | target | c | owner: b", "harmless | union |  | some: b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := summary(diff.Policies(test.before, test.after)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOptionChangesAreReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options policy.Options
		want    []string
	}{
		"more subjects": {policy.Options{SubjectTypes: []string{"user", "group"}}, []string{
			"widening | target | role | subject: group", "harmless | type | group | group",
		}},
		"other subjects": {policy.Options{SubjectTypes: []string{"group"}}, []string{
			"breaking-for-data | target | role | subject: user", "breaking-for-data | type | user | user",
			"widening | target | role | subject: group", "harmless | type | group | group",
		}},
		"role suffix": {policy.Options{RoleSuffix: "_rel"}, []string{
			"breaking-for-data | condition | project | view: role binding in view_role",
			"breaking-for-data | condition | tenant | view: role binding in view_role",
			"widening | condition | project | view: role binding in view_rel",
			"widening | condition | tenant | view: role binding in view_rel",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := summary(diff.Policies(parse(t, policy.Options{}, base), parse(t, test.options, base)))
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestChangesHavePlaces(t *testing.T) {
	t.Parallel()
	after := edit(t, base, "friend\n        targetTypes: [tenant]", "friend\n        targetTypes: [tenant, project]", "idPrefix: ten", "idPrefix: tnt")
	for _, c := range diff.Policies(parse(t, policy.Options{}, base), parse(t, policy.Options{}, after)) {
		switch got := [2]string{c.Old.String(), c.New.String()}; c.What {
		case diff.Target:
			if want := [2]string{"", "0.yaml:14:31"}; got != want {
				t.Errorf("target: got %q, want %q", got, want)
			}
		case diff.IDPrefix:
			if got[0] == "" || got[0] != got[1] {
				t.Errorf("id prefix: got %q", got)
			}
		default:
			t.Errorf("unexpected %v", c)
		}
	}
}
