package graph_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy/graph"
)

// hostileGraph returns a graph with names that have a meaning in the formats, and with texts that any document may
// contain.
func hostileGraph() *graph.Graph {
	end := &graph.Node{
		Name: "end", Owner: "\"]; <script>a(1)</script> & #quot; `md` %% \\n \x00\u202e]|{}",
		Actions: []graph.Action{{Name: "view", ByRole: true}, {Name: strings.Repeat("é", 200)}},
	}
	beside := &graph.Node{Name: "subgraph", Beside: true}
	flows := make([]graph.ActionFlow, 20)
	for i := range flows {
		flows[i] = graph.ActionFlow{Tail: "view", Head: "edit"}
	}
	return &graph.Graph{Nodes: []*graph.Node{end, beside}, Edges: []*graph.Edge{
		{Relation: "click", From: end, To: []*graph.Node{end, beside}, Flows: flows},
		{Relation: "up", From: beside, To: []*graph.Node{end, beside}},
	}}
}

func TestDOTQuotesTexts(t *testing.T) {
	t.Parallel()
	got, err := hostileGraph().RenderDOT()
	flows := `click` + strings.Repeat(`\nview <- edit`, 11) + `\nand 9 more`
	want := `digraph policy {
  rankdir=LR;
  node [shape=box, fontname="Helvetica"];
  edge [fontname="Helvetica", fontsize=11];
  "end" [label="end\n\"]; <script>a(1)</script> & #quot; ` + "`md`" + ` %% \\n ��]|{}\n● view\l○ ` + strings.Repeat("é", 61) + `…\l"];
  "subgraph" [label="subgraph\n", style=dashed];
  "end" -> "end" [label="` + flows + `"];
  "end" -> "subgraph" [label="` + flows + `"];
  "subgraph" -> "end" [label="up"];
  "subgraph" -> "subgraph" [label="up"];
}
`
	if err != nil || string(got) != want {
		t.Errorf("%v; got\n%swant\n%s", err, got, want)
	}
}

func TestMermaidEscapesSpecialCharacters(t *testing.T) {
	t.Parallel()
	got, err := hostileGraph().RenderMermaid()
	flows := `<i>click</i>` + strings.Repeat(`<br/>view #60;- edit`, 11) + `<br/>and 9 more`
	want := `flowchart LR
  t_end["<b>end</b><br/><i>#34;#93;#59; #60;script#62;a#40;1#41;#60;/script#62; #38; #35;quot#59; #96;md#96; #37;#37; #92;n ` +
		`#65533;#65533;#93;#124;#123;#125;</i><br/>● view<br/>○ ` + strings.Repeat("#233;", 61) + `…"]
  t_subgraph["<b>subgraph</b>"]:::beside
  t_end -->|"` + flows + `"| t_end
  t_end -->|"` + flows + `"| t_subgraph
  t_subgraph -->|"<i>up</i>"| t_end
  t_subgraph -->|"<i>up</i>"| t_subgraph
  classDef beside stroke-dasharray: 4 3
`
	if err != nil || string(got) != want {
		t.Errorf("%v; got\n%swant\n%s", err, got, want)
	}
}

func TestSVGIsSafeXML(t *testing.T) {
	t.Parallel()
	got, err := hostileGraph().RenderSVG()
	if err != nil {
		t.Fatal(err)
	}
	elements, texts := map[string]int{}, map[string]int{}
	decoder := xml.NewDecoder(strings.NewReader(string(got)))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || strings.HasSuffix(a.Name.Local, "href") {
					t.Errorf("<%s %s=%q>", token.Name.Local, a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			texts[string(token)]++
		}
	}
	for text, want := range map[string]int{
		"end": 1, "subgraph": 1, "click": 2, "up": 2, "view <- edit": 22, "and 9 more": 2, "● view": 1,
		"\"]; <script>a(1)</script> & #quot; `md` %% \\n ��]|{}": 1, "○ " + strings.Repeat("é", 61) + "…": 1,
		"A dashed box is not in the selection, but is connected with a box that is.": 1,
	} {
		if texts[text] != want {
			t.Errorf("%q stands there %d times, not %d", text, texts[text], want)
		}
	}
	for element := range elements {
		if !slices.Contains([]string{"svg", "g", "title", "style", "defs", "marker", "path", "rect", "text"}, element) {
			t.Errorf("there is an element <%s>", element)
		}
	}
}

// graphOfManyArrows returns a graph of boxes, each with arrows to a number of the next boxes.
func graphOfManyArrows(boxes, arrows int) *graph.Graph {
	g := &graph.Graph{}
	for i := range boxes {
		g.Nodes = append(g.Nodes, &graph.Node{Name: fmt.Sprintf("type%d", i)})
	}
	for i, from := range g.Nodes {
		for j := range arrows {
			g.Edges = append(g.Edges, &graph.Edge{Relation: "relation", From: from, To: []*graph.Node{g.Nodes[(i+j+1)%boxes]}})
		}
	}
	return g
}

func TestEveryFormatIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		boxes, arrows int
		dot, mmd, svg string
	}{
		"what can be drawn": {boxes: 200, arrows: 1},
		"many types":        {boxes: 201, arrows: 1, svg: "the graph has 201 types, and a drawing at most 200: filter by type, action or owner"},
		"many arrows": {
			boxes: 150, arrows: 4,
			mmd: "the graph has more than 500 arrows for Mermaid: filter by type, action or owner",
		},
		"too many arrows": {
			boxes: 200, arrows: 60,
			mmd: "the graph has more than 500 arrows for Mermaid: filter by type, action or owner",
			svg: "the graph has too many arrows to draw them: filter by type, action or owner",
		},
		"too many types": {
			boxes: 120_000, arrows: 0,
			dot: "the graph has more than 4194304 bytes for Graphviz: filter by type, action or owner",
			mmd: "the graph has more than 50000 bytes for Mermaid: filter by type, action or owner",
			svg: "the graph has 120000 types, and a drawing at most 200: filter by type, action or owner",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := map[string]string{"dot": test.dot, "mmd": test.mmd, "svg": test.svg}
			for extension, draw := range formats() {
				got, err := draw(graphOfManyArrows(test.boxes, test.arrows))
				if text := fmt.Sprint(err); err != nil && (text != want[extension] || got != nil) || err == nil && want[extension] != "" {
					t.Errorf("%s: got %d bytes, %v, want %q", extension, len(got), err, want[extension])
				}
			}
		})
	}
}
