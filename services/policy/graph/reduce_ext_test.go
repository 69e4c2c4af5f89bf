package graph_test

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy/graph"
)

// services returns a policy of tenants, and of services with a few types each. Tenants or projects own the first type
// of a service, and the others are parts of it.
func services(count, types int) []string {
	documents := []string{`# Provided by tenant-api
resourceTypes:
- {name: tenant, idPrefix: idnten, relationships: [{relation: parent, targetTypes: [tenant]}]}
- {name: project, idPrefix: idnprj, relationships: [{relation: parent, targetTypes: [tenant]}]}
unions: [{name: owners, resourceTypes: [tenant, project]}]
`}
	for i := range count {
		s := string(rune('a' + i))
		var b strings.Builder
		fmt.Fprintf(&b, "# Provided by %s.api\nresourceTypes:\n", s)
		for j := range types {
			relation := "{relation: parent, targetTypes: [" + s + "type0]}"
			if j == 0 {
				relation = "{relation: owner, targetTypes: [owners]}"
			}
			fmt.Fprintf(&b, "- {name: %stype%d, idPrefix: %spre%d, relationships: [%s]}\n", s, j, s, j, relation)
		}
		b.WriteString("actions: [")
		for _, verb := range []string{"get", "list", "create", "update", "delete"} {
			fmt.Fprintf(&b, "name: %s_%s, ", s, verb)
		}
		b.WriteString("]\nactionBindings:\n")
		for _, verb := range []string{"get", "list", "create", "update", "delete"} {
			fmt.Fprintf(&b, "- {actionName: %[1]s_%[2]s, typeName: owners, conditions: [roleBinding: {}, relationshipAction: {relation: parent, actionName: %[1]s_%[2]s}]}\n", s, verb)
			for j := range types {
				relation := "parent"
				if j == 0 {
					relation = "owner"
				}
				fmt.Fprintf(&b, "- {actionName: %[1]s_%[2]s, typeName: %[1]stype%[3]d, conditions: [relationshipAction: {relation: %[4]s, actionName: %[1]s_%[2]s}]}\n",
					s, verb, j, relation)
			}
		}
		documents = append(documents, b.String())
	}
	return documents
}

func TestLargeGraphIsDrawnInBrief(t *testing.T) {
	t.Parallel()
	g := graph.FromPolicy(parse(t, services(12, 5)...), graph.Filter{})
	if len(g.Nodes) != 63 || !g.Brief {
		t.Fatalf("%d nodes, in brief %t", len(g.Nodes), g.Brief)
	}
	for extension, draw := range formats() {
		drawing, err := draw(g)
		if err != nil {
			t.Fatal(err)
		}
		text := string(drawing)
		if strings.Contains(text, "a_get") || strings.Count(text, "5 actions") != 2*60 || !strings.Contains(text, "60 actions") {
			t.Errorf("%s does not count actions:\n%.1000s", extension, text)
		}
	}
	svg, err := g.RenderSVG()
	if err != nil {
		t.Fatal(err)
	}
	text := string(svg)
	for hint, want := range map[string]int{
		"<title>--focus ": 62, "<title>--focus ltype4</title>": 1, ">→ owners<": 12, ">union<": 1, "To see fewer types with their actions, use": 1, "--focus TYPE, --types": 1, "A round box is a union": 1,
	} {
		if got := strings.Count(text, hint); got != want {
			t.Errorf("%q is there %d times, not %d", hint, got, want)
		}
	}
	var size struct {
		Width  int `xml:"width,attr"`
		Height int `xml:"height,attr"`
	}
	if err := xml.Unmarshal(svg, &size); err != nil || size.Width > 1200 {
		t.Errorf("the picture is %d wide (%v)", size.Width, err)
	}
	few := graph.FromPolicy(parse(t, services(5, 5)...), graph.Filter{})
	if few.Brief || len(few.Nodes) != 27 {
		t.Errorf("of %d nodes, in brief %t", len(few.Nodes), few.Brief)
	}
}

func TestSimplifyReducesGraph(t *testing.T) {
	t.Parallel()
	p := parse(t, services(2, 3)...)
	for name, test := range map[string]struct {
		filter graph.Filter
		want   []string
	}{
		"every service collapsed": {graph.Filter{Collapse: expression(".")}, []string{
			"a.api/3()", "b.api/3()", "tenant-api/2()",
			"a.api owner[a_create a_delete a_get a_list a_update] tenant-api", "b.api owner[b_create b_delete b_get b_list b_update] tenant-api",
		}},
		"one collapsed": {graph.Filter{Collapse: expression("^a"), Actions: expression("_get$")}, []string{
			"btype0(b_get)", "btype1(b_get)", "btype2(b_get)", "a.api/3()", "project(a_get b_get)", "tenant(a_get b_get)",
			"a.api owner[a_get] project tenant", "btype0 owner[b_get] project tenant", "btype1 parent[b_get] btype0", "btype2 parent[b_get] btype0",
			"project parent[a_get b_get] tenant", "tenant parent[a_get b_get] tenant",
		}},
		"a type in focus": {graph.Filter{Focus: "btype1", Actions: expression("_get$")}, []string{
			"[btype0(b_get)]", "btype1(b_get)", "btype1 parent[b_get] btype0",
		}},
		"two steps from it": {graph.Filter{Focus: "btype1", Depth: 2, Actions: expression("_get$")}, []string{
			"btype0(b_get)", "btype1(b_get)", "[btype2(b_get)]", "[project(a_get b_get)]", "[tenant(a_get b_get)]",
			"btype0 owner[b_get] project tenant", "btype1 parent[b_get] btype0", "btype2 parent[b_get] btype0",
		}},
		"the others collapsed": {graph.Filter{Focus: "atype0", Depth: 2, Collapse: expression("."), Actions: expression("_get$")}, []string{
			"atype0(a_get)", "atype1(a_get)", "atype2(a_get)", "[b.api/3()]", "tenant-api/2()",
			"atype0 owner[a_get] tenant-api", "atype1 parent[a_get] atype0", "atype2 parent[a_get] atype0", "b.api owner[b_get] tenant-api",
		}},
		"a type that the filter leaves out": {graph.Filter{Focus: "tenant", Types: expression("^atype1$")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := graph.FromPolicy(p, test.filter)
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
	if err := (graph.Filter{Focus: "atype9"}).Validate(p); err == nil || !strings.Contains(err.Error(), `no type "atype9": the policy has atype0`) {
		t.Errorf("a type that is not there: %v", err)
	}
	if err := (graph.Filter{Focus: "atype0"}).Validate(p); err != nil {
		t.Error(err)
	}
}
