package graph_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/graph"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func parse(t *testing.T, documents ...string) *policy.Policy {
	t.Helper()
	content := strings.Join(documents, "\n---\n")
	p, found := check.Files([]syntax.File{{Name: "p.yaml", Content: []byte(content)}}, syntax.ParseLimits{}, policy.Options{})
	if p == nil {
		t.Fatalf("%v in\n%s", found, content)
	}
	return p
}

func fixture(t *testing.T) []string {
	t.Helper()
	document, err := os.ReadFile("../testdata/loadbalancer/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(document), "\n---\n")
}

// formats returns all formats of a graph, by the extension of their files.
func formats() map[string]func(*graph.Graph) ([]byte, error) {
	return map[string]func(*graph.Graph) ([]byte, error){
		"dot": (*graph.Graph).RenderDOT, "mmd": (*graph.Graph).RenderMermaid, "svg": (*graph.Graph).RenderSVG,
	}
}

func TestFixtureEqualsGoldenDrawing(t *testing.T) {
	t.Parallel()
	for extension, draw := range formats() {
		t.Run(extension, func(t *testing.T) {
			t.Parallel()
			got, err := draw(graph.FromPolicy(parse(t, fixture(t)...), graph.Filter{}))
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("testdata", "loadbalancer."+extension))
			if err == nil && bytes.Equal(got, want) {
				return
			}
			is := filepath.Join(t.ArtifactDir(), "loadbalancer."+extension)
			if err := os.WriteFile(is, got, 0o644); err != nil {
				t.Fatal(err)
			}
			t.Errorf("%v; see %s (go test -artifacts keeps it)", err, is)
		})
	}
}

func TestGraphIsIndependentOfDocumentOrder(t *testing.T) {
	t.Parallel()
	documents := fixture(t)
	slices.Reverse(documents)
	for extension, draw := range formats() {
		t.Run(extension, func(t *testing.T) {
			t.Parallel()
			want, err := draw(graph.FromPolicy(parse(t, fixture(t)...), graph.Filter{}))
			if err != nil {
				t.Fatal(err)
			}
			got, err := draw(graph.FromPolicy(parse(t, documents...), graph.Filter{}))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v; got\n%s", err, got)
			}
		})
	}
}

// summary returns a short form of a graph: "name(actions)", in brackets if Beside is set, and "from relation[flows]
// to".
func summary(g *graph.Graph) []string {
	var all []string
	for _, b := range g.Nodes {
		var actions []string
		for _, a := range b.Actions {
			actions = append(actions, a.Name)
		}
		s := b.Name
		if b.Types > 0 {
			s += fmt.Sprintf("/%d", b.Types)
		}
		s += "(" + strings.Join(actions, " ") + ")"
		if b.Beside {
			s = "[" + s + "]"
		}
		all = append(all, s)
	}
	for _, a := range g.Edges {
		var to []string
		for _, b := range a.To {
			to = append(to, b.Name)
		}
		all = append(all, fmt.Sprintf("%s %s%v %s", a.From.Name, a.Relation, a.Flows, strings.Join(to, " ")))
	}
	return all
}

func TestFilterSelectsMatchesAndNeighbors(t *testing.T) {
	t.Parallel()
	p := parse(t, `
# Provided by iam
resourceTypes:
- {name: tenant, idPrefix: ten, relationships: [{relation: parent, targetTypes: [tenant]}]}
- {name: island, idPrefix: isl}
actions: [name: view, name: edit]
actionBindings:
- {actionName: view, typeName: tenant, conditions: [roleBinding: {}, relationshipAction: {relation: parent, actionName: view}]}
- {actionName: edit, typeName: tenant, conditions: [roleBinding: {}]}
`, `
# Provided by compute
resourceTypes:
- {name: server, idPrefix: srv, relationships: [{relation: owner, targetTypes: [tenant]}, {relation: friend, targetTypes: [server, tenant]}]}
actions: [name: boot, name: halt]
actionBindings:
- {actionName: view, typeName: server, conditions: [relationshipAction: {relation: owner, actionName: view}]}
- {actionName: boot, typeName: server, conditions: [relationshipAction: {relation: owner, actionName: edit}]}
- {actionName: halt, typeName: server, conditions: [roleBinding: {}]}
- {actionName: boot, typeName: island, conditions: [roleBinding: {}]}
`)
	for name, test := range map[string]struct {
		types, actions, owners string
		want                   []string
	}{
		"all": {want: []string{
			"island(boot)", "server(boot halt view)", "tenant(edit view)",
			"server friend[] server tenant", "server owner[boot <- edit view] tenant", "tenant parent[view] tenant",
		}},
		"a type": {types: "^server$", want: []string{
			"server(boot halt view)", "[tenant(edit view)]", "server friend[] server tenant", "server owner[boot <- edit view] tenant",
		}},
		"a type that others lead to": {types: "^tenant$", want: []string{
			"[server(boot view)]", "tenant(edit view)",
			"server friend[] tenant", "server owner[boot <- edit view] tenant", "tenant parent[view] tenant",
		}},
		"a type without arrows": {types: "island", want: []string{"island(boot)"}},
		"an action": {actions: "^boot$", want: []string{
			"island(boot)", "server(boot)", "[tenant(edit)]", "server owner[boot <- edit] tenant",
		}},
		"an action at the head": {actions: "^edit$", want: []string{
			"[server(boot)]", "tenant(edit)", "server owner[boot <- edit] tenant",
		}},
		"an owner": {owners: "^iam$", want: []string{
			"island(boot)", "tenant(edit view)", "tenant parent[view] tenant",
		}},
		"an owner of bindings": {owners: "^compute$", want: []string{
			"island(boot)", "server(boot halt view)", "[tenant(edit view)]",
			"server friend[] server tenant", "server owner[boot <- edit view] tenant",
		}},
		"a type and an action": {types: "^tenant$", actions: "^view$", want: []string{
			"[server(view)]", "tenant(view)", "server owner[view] tenant", "tenant parent[view] tenant",
		}},
		"nothing": {types: "^nothing$"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := graph.FromPolicy(p, graph.Filter{Types: expression(test.types), Actions: expression(test.actions), Owners: expression(test.owners)})
			if got := summary(g); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			for extension, draw := range formats() {
				if _, err := draw(g); err != nil {
					t.Errorf("%s: %v", extension, err)
				}
			}
		})
	}
}

func expression(s string) *regexp.Regexp {
	if s == "" {
		return nil
	}
	return regexp.MustCompile(s)
}

func TestGraphOmitsUndeclaredRoles(t *testing.T) {
	t.Parallel()
	const bound = "resourceTypes: [{name: a, idPrefix: aaa}]\nactions: [name: view]\nactionBindings: [{actionName: view, typeName: a, conditions: [roleBinding: {}]}]"
	const role = "resourceTypes:\n- {name: user, idPrefix: usr}\n- {name: role, idPrefix: rol, relationships: [{relation: subject, targetTypes: [user]}]}"
	for name, test := range map[string]struct{ documents, want []string }{
		"implied":  {[]string{bound}, []string{"a(view)"}},
		"declared": {[]string{bound, role}, []string{"a(view)", "role()", "user()", "role subject[] user"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := summary(graph.FromPolicy(parse(t, test.documents...), graph.Filter{})); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
