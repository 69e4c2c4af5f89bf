package graph

import (
	"fmt"
	"strings"
)

// maxDOT is how many bytes a graph for Graphviz has at most.
const maxDOT = 4 << 20

// DOT is the graph for Graphviz. It is an error if there is too much of it; a filter helps.
func (g *Graph) DOT() ([]byte, error) {
	b := strings.Builder{}
	b.WriteString("digraph policy {\n  rankdir=LR;\n  node [shape=box, fontname=\"Helvetica\"];\n  edge [fontname=\"Helvetica\", fontsize=11];\n")
	for _, n := range g.Nodes {
		style := ""
		if n.Beside {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  \"%s\" [label=\"%s\"%s];\n", n.Name, dotLabel(n), style)
		if b.Len() > maxDOT {
			return nil, errTooLarge("Graphviz", maxDOT)
		}
	}
	for _, e := range g.Edges {
		label := strings.Join(dotLines(append([]string{e.Relation}, lines(e.Flows)...)), `\n`)
		for _, to := range e.To {
			fmt.Fprintf(&b, "  \"%s\" -> \"%s\" [label=\"%s\"];\n", e.From.Name, to.Name, label)
			if b.Len() > maxDOT {
				return nil, errTooLarge("Graphviz", maxDOT)
			}
		}
	}
	b.WriteString("}\n")
	return []byte(b.String()), nil
}

// dotLabel is the text of a n. The escape \n ends a line in the middle, \l one at the left.
func dotLabel(n *Node) string {
	label := dotEscape(n.Name) + `\n`
	if n.Owner != "" {
		label += dotEscape(n.Owner) + `\n`
	}
	if len(n.Actions) > 0 {
		label += strings.Join(dotLines(lines(n.Actions)), `\l`) + `\l`
	}
	return label
}

func dotLines(lines []string) []string {
	for i, line := range lines {
		lines[i] = dotEscape(line)
	}
	return lines
}

func dotEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printable(s))
}

func errTooLarge(format string, most int) error {
	return fmt.Errorf("the graph has more than %d bytes for %s: filter by type, action or owner", most, format)
}
