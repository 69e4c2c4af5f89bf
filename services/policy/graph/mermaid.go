package graph

import (
	"fmt"
	"strings"
)

const (
	// maxMermaidBytes and maxMermaidArrows are the default limits of Mermaid.
	maxMermaidBytes  = 50_000
	maxMermaidArrows = 500
)

// RenderMermaid returns the graph as a Mermaid flowchart, which many Markdown viewers draw. It returns an error if the graph
// exceeds Mermaid's limits; use a filter then.
func (g *Graph) RenderMermaid() ([]byte, error) {
	b, arrows := strings.Builder{}, 0
	b.WriteString("flowchart LR\n")
	for _, n := range g.Nodes {
		class := ""
		if n.Beside {
			class = ":::beside"
		}
		fmt.Fprintf(&b, "  %s[\"%s\"]%s\n", mermaidID(n), g.mermaidNodeLabel(n), class)
		if b.Len() > maxMermaidBytes {
			return nil, tooLargeError("Mermaid", maxMermaidBytes)
		}
	}
	for _, e := range g.Edges {
		label := g.mermaidEdgeLabel(e)
		if arrows += len(e.To); arrows > maxMermaidArrows {
			return nil, fmt.Errorf("the graph has more than %d arrows for Mermaid: filter by type, action or owner", maxMermaidArrows)
		}
		for _, to := range e.To {
			fmt.Fprintf(&b, "  %s -->%s %s\n", mermaidID(e.From), label, mermaidID(to))
		}
		if b.Len() > maxMermaidBytes {
			return nil, tooLargeError("Mermaid", maxMermaidBytes)
		}
	}
	b.WriteString("  classDef beside stroke-dasharray: 4 3\n")
	return []byte(b.String()), nil
}

func (g *Graph) mermaidNodeLabel(n *Node) string {
	words := []string{"<b>" + escapeMermaid(n.Name) + "</b>"}
	if kind := n.subtitle(); kind != "" {
		words = append(words, "<i>"+escapeMermaid(kind)+"</i>")
	}
	for _, line := range listLines(n.Actions, g.Brief) {
		words = append(words, escapeMermaid(line))
	}
	return strings.Join(words, "<br/>")
}

func (g *Graph) mermaidEdgeLabel(e *Edge) string {
	if e.Relation == "" {
		return ""
	}
	words := []string{"<i>" + escapeMermaid(e.Relation) + "</i>"}
	for _, line := range listLines(e.Flows, g.Brief) {
		words = append(words, escapeMermaid(line))
	}
	return `|"` + strings.Join(words, "<br/>") + `"|`
}

// mermaidID returns an ID that is never a keyword of Mermaid, such as "end". Names of owners may be any text.
func mermaidID(n *Node) string {
	if n.Types > 0 {
		return fmt.Sprintf("o_%x", n.Name)
	}
	return "t_" + n.Name
}

// escapeMermaid escapes every character with a possible meaning in Mermaid or HTML.
func escapeMermaid(s string) string {
	var b strings.Builder
	for _, r := range printableText(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" _-.,/●○…", r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
