package graph

import (
	"fmt"
	"strings"
)

const (
	// maxMermaidBytes and maxMermaidArrows are what Mermaid takes unless whoever runs it raises its limits.
	maxMermaidBytes  = 50_000
	maxMermaidArrows = 500
)

// Mermaid is the graph as a flowchart for Mermaid, which many viewers of Markdown draw.
// It is an error if they would refuse it because of its size; a filter helps.
func (g *Graph) Mermaid() ([]byte, error) {
	b, arrows := strings.Builder{}, 0
	b.WriteString("flowchart LR\n")
	for _, box := range g.Boxes {
		class := ""
		if box.Beside {
			class = ":::beside"
		}
		fmt.Fprintf(&b, "  %s[\"%s\"]%s\n", mermaidID(box), mermaidBox(box), class)
		if b.Len() > maxMermaidBytes {
			return nil, errTooLarge("Mermaid", maxMermaidBytes)
		}
	}
	for _, a := range g.Arrows {
		label := mermaidArrow(a)
		if arrows += len(a.To); arrows > maxMermaidArrows {
			return nil, fmt.Errorf("the graph has more than %d arrows for Mermaid: filter by type, action or owner", maxMermaidArrows)
		}
		for _, to := range a.To {
			fmt.Fprintf(&b, "  %s -->|\"%s\"| %s\n", mermaidID(a.From), label, mermaidID(to))
		}
		if b.Len() > maxMermaidBytes {
			return nil, errTooLarge("Mermaid", maxMermaidBytes)
		}
	}
	b.WriteString("  classDef beside stroke-dasharray: 4 3\n")
	return []byte(b.String()), nil
}

func mermaidBox(box *Box) string {
	words := []string{"<b>" + mermaidEscape(box.Name) + "</b>"}
	if box.Owner != "" {
		words = append(words, "<i>"+mermaidEscape(box.Owner)+"</i>")
	}
	for _, line := range lines(box.Actions) {
		words = append(words, mermaidEscape(line))
	}
	return strings.Join(words, "<br/>")
}

func mermaidArrow(a *Arrow) string {
	words := []string{"<i>" + mermaidEscape(a.Relation) + "</i>"}
	for _, line := range lines(a.Flows) {
		words = append(words, mermaidEscape(line))
	}
	return strings.Join(words, "<br/>")
}

// mermaidID never is one of Mermaid's own words, such as end.
func mermaidID(b *Box) string { return "t_" + b.Name }

// mermaidEscape writes all that might mean something to Mermaid, or to HTML, by its number.
func mermaidEscape(s string) string {
	var b strings.Builder
	for _, r := range printable(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" _-.,/●○…", r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
