package explain_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/explain"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func parse(t *testing.T, document string) *policy.Policy {
	t.Helper()
	p, found := check.Files([]syntax.File{{Name: "p.yaml", Content: []byte(document)}}, syntax.ParseLimits{}, policy.Options{})
	if p == nil {
		t.Fatalf("%v in\n%s", found, document)
	}
	return p
}

func fixture(t *testing.T) *policy.Policy {
	t.Helper()
	document, err := os.ReadFile("../testdata/loadbalancer/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(document))
}

func text(t *testing.T, p *policy.Policy, typeName, action string) string {
	t.Helper()
	tree, err := explain.Action(p, typeName, action)
	if err != nil {
		t.Fatal(err)
	}
	return tree.RenderText()
}

func TestActionTreeReachesRoleBindings(t *testing.T) {
	t.Parallel()
	const want = `loadbalancer_get on loadbalancer (p.yaml:37:5, load-balancer-api)
├─ role binding in loadbalancer_get_role, of role#subject
└─ owner -> loadbalancer_get (p.yaml:30:19, load-balancer-api)
   ├─ on organization (bound to resourceowner, p.yaml:44:5, load-balancer-api)
   │  ├─ role binding in loadbalancer_get_role, of role#subject
   │  └─ parent -> loadbalancer_get (p.yaml:21:19, enterprise-api)
   │     └─ on tenant (bound to resourceowner, p.yaml:44:5, load-balancer-api)
   │        ├─ role binding in loadbalancer_get_role, of role#subject
   │        └─ parent -> loadbalancer_get (p.yaml:6:19, tenant-api)
   │           └─ on tenant: recursion, the same on the next tenant
   ├─ on project (bound to resourceowner, p.yaml:44:5, load-balancer-api)
   │  ├─ role binding in loadbalancer_get_role, of role#subject
   │  └─ parent -> loadbalancer_get (p.yaml:15:19, enterprise-api)
   │     └─ on organization: as above
   └─ on tenant: as above
`
	if got := text(t, fixture(t), "loadbalancer", "loadbalancer_get"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestActionTreeMarksUngrantable(t *testing.T) {
	t.Parallel()
	p := parse(t, `
resourceTypes:
- {name: a, idPrefix: aaa, relationships: [{relation: up, targetTypes: [a]}]}
actions: [name: view, name: see]
actionBindings:
- {actionName: view, typeName: a, conditions: [relationshipAction: {relation: up, actionName: see}]}
- {actionName: see, typeName: a, conditions: [relationshipAction: {relation: up, actionName: view}]}
`)
	const want = `view on a: nobody can ever have it (p.yaml:6:3)
└─ up -> see (p.yaml:3:55)
   └─ on a: nobody can ever have it (p.yaml:7:3)
      └─ up -> view (p.yaml:3:55)
         └─ on a: recursion, the same on the next a
`
	if got := text(t, p, "a", "view"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestActionTreeJSONEqualsText(t *testing.T) {
	t.Parallel()
	tree, err := explain.Action(fixture(t), "tenant", "loadbalancer_get")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(tree)
	const want = `{"type":"tenant","action":"loadbalancer_get","on":"resourceowner",` +
		`"bound":{"file":"p.yaml","document":3,"line":44,"column":5,"owner":"load-balancer-api"},` +
		`"role":{"relation":"loadbalancer_get_role","holder":"role#subject"},` +
		`"steps":[{"relation":"parent","action":"loadbalancer_get",` +
		`"declared":{"file":"p.yaml","document":1,"line":6,"column":19,"owner":"tenant-api"},` +
		`"targets":[{"type":"tenant","action":"loadbalancer_get","on":"resourceowner","ending":"recursion",` +
		`"bound":{"file":"p.yaml","document":3,"line":44,"column":5,"owner":"load-balancer-api"}}]}]}`
	if err != nil || string(got) != want {
		t.Errorf("got\n%s, %v want\n%s", got, err, want)
	}
}

func TestUnknownActionSuggestsNames(t *testing.T) {
	t.Parallel()
	p := parse(t, `
resourceTypes:
- {name: tenant, idPrefix: ten}
- {name: tenants, idPrefix: tns}
- {name: bare, idPrefix: bar}
unions: [{name: owner, resourceTypes: [tenant, tenants]}]
actions: [name: view, name: edit, name: unbound]
actionBindings:
- {actionName: view, typeName: owner, conditions: [roleBinding: {}]}
- {actionName: edit, typeName: tenant, conditions: [roleBinding: {}]}
`)
	for name, test := range map[string]struct{ typeName, action, want string }{
		"mistyped type":   {"tenat", "view", `there is no type "tenat": did you mean tenant?`},
		"ambiguous type":  {"tenantz", "view", `there is no type "tenantz": did you mean tenant or tenants?`},
		"unknown type":    {"x", "view", `there is no type "x": the types are bare, role, tenant, tenants, user`},
		"union":           {"owner", "view", `owner is a union: name one of its types: tenant, tenants`},
		"mistyped action": {"tenant", "veiw", `type tenant has no action "veiw": did you mean view?`},
		"almost":          {"tenant", "vew", `type tenant has no action "vew": did you mean view?`},
		"elsewhere":       {"tenants", "edit", `action edit is not bound to type tenants: tenants has view, and the action is bound to tenant`},
		"bound nowhere":   {"bare", "unbound", `action unbound is not bound to type bare: nothing is bound to bare, and the action is bound to nothing`},
		"nothing bound":   {"bare", "edits", `there is no action "edits": did you mean edit?`},
		"endless":         {strings.Repeat("a", 1000), "view", `there is no type "` + strings.Repeat("a", 64) + `": the types are bare, role, tenant, tenants, user`},
		"hostile":         {"a\nb", "view", `there is no type "a\nb": the types are bare, role, tenant, tenants, user`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tree, err := explain.Action(p, test.typeName, test.action); tree != nil || err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// chain returns a policy in which each type leads to the next, and the last type to several others.
func chain(length, wide int) string {
	var types, bindings, last strings.Builder
	for i := range length {
		target := fmt.Sprintf("[t%d]", i+1)
		if i == length-1 {
			target = "[" + strings.TrimSuffix(last.String(), ",") + "]"
		}
		fmt.Fprintf(&types, "- {name: t%d, idPrefix: t%05d, relationships: [{relation: up, targetTypes: %s}]}\n", i, i, target)
		fmt.Fprintf(&bindings, "- {actionName: view, typeName: t%d, conditions: [relationshipAction: {relation: up, actionName: view}]}\n", i)
		if i == length-2 {
			for j := range wide {
				fmt.Fprintf(&last, "w%d,", j)
			}
		}
	}
	for j := range wide {
		fmt.Fprintf(&types, "- {name: w%d, idPrefix: w%05d}\n", j, j)
		fmt.Fprintf(&bindings, "- {actionName: view, typeName: w%d, conditions: [roleBinding: {}]}\n", j)
	}
	return "resourceTypes:\n" + types.String() + "actions: [name: view]\nactionBindings:\n" + bindings.String()
}

func TestActionTreeIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		document, want string
		lines          int
	}{
		"wide": {chain(3, 12_000), "on 2003 more types, too many to show", 20_001},
		"deep": {chain(150, 1), "on t100: there is more, too much to show (p.yaml:255:3)", 201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := text(t, parse(t, test.document), "t0", "view")
			lines := strings.Split(strings.TrimSpace(got), "\n")
			if last := lines[len(lines)-1]; !strings.HasSuffix(last, "└─ "+test.want) || len(lines) != test.lines {
				t.Errorf("got %d lines, the last %q", len(lines), strings.TrimSpace(last))
			}
		})
	}
}
