package graph

import (
	"fmt"
	"strings"
)

// maxDOT bounds a graph for Graphviz, in bytes.
const maxDOT = 4 << 20

// RenderDOT returns the graph for Graphviz. It returns an error if the graph is too large; use a filter then.
func (g *Graph) RenderDOT() ([]byte, error) {
	b := strings.Builder{}
	b.WriteString("digraph policy {\n  rankdir=LR;\n  node [shape=box, fontname=\"Helvetica\"];\n  edge [fontname=\"Helvetica\", fontsize=11];\n")
	for _, n := range g.Nodes {
		style := ""
		switch {
		case n.Beside:
			style = ", style=dashed"
		case n.Union:
			style = ", style=rounded"
		}
		fmt.Fprintf(&b, "  \"%s\" [label=\"%s\"%s];\n", escapeDOT(n.uniqueID()), g.dotLabel(n), style)
		if b.Len() > maxDOT {
			return nil, tooLargeError("Graphviz", maxDOT)
		}
	}
	for _, e := range g.Edges {
		label := strings.Join(escapeDOTLines(append([]string{e.Relation}, listLines(e.Flows, g.Brief)...)), `\n`)
		for _, to := range e.To {
			fmt.Fprintf(&b, "  \"%s\" -> \"%s\" [label=\"%s\"];\n", escapeDOT(e.From.uniqueID()), escapeDOT(to.uniqueID()), label)
			if b.Len() > maxDOT {
				return nil, tooLargeError("Graphviz", maxDOT)
			}
		}
	}
	b.WriteString("}\n")
	return []byte(b.String()), nil
}

// dotLabel returns the text of a node. The escape \n ends a centered line, \l a left-aligned one.
func (g *Graph) dotLabel(n *Node) string {
	label := escapeDOT(n.Name) + `\n`
	if kind := n.subtitle(); kind != "" {
		label += escapeDOT(kind) + `\n`
	}
	if len(n.Actions) > 0 {
		label += strings.Join(escapeDOTLines(listLines(n.Actions, g.Brief)), `\l`) + `\l`
	}
	return label
}

func escapeDOTLines(lines []string) []string {
	for i, line := range lines {
		lines[i] = escapeDOT(line)
	}
	return lines
}

func escapeDOT(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printableText(s))
}

func tooLargeError(format string, most int) error {
	return fmt.Errorf("the graph has more than %d bytes for %s: filter by type, action or owner", most, format)
}
