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
	for _, box := range g.Boxes {
		style := ""
		if box.Beside {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  \"%s\" [label=\"%s\"%s];\n", box.Name, dotLabel(box), style)
		if b.Len() > maxDOT {
			return nil, errTooLarge("Graphviz", maxDOT)
		}
	}
	for _, a := range g.Arrows {
		label := strings.Join(dotLines(append([]string{a.Relation}, lines(a.Flows)...)), `\n`)
		for _, to := range a.To {
			fmt.Fprintf(&b, "  \"%s\" -> \"%s\" [label=\"%s\"];\n", a.From.Name, to.Name, label)
			if b.Len() > maxDOT {
				return nil, errTooLarge("Graphviz", maxDOT)
			}
		}
	}
	b.WriteString("}\n")
	return []byte(b.String()), nil
}

// dotLabel is the text of a box. The escape \n ends a line in the middle, \l one at the left.
func dotLabel(box *Box) string {
	label := dotEscape(box.Name) + `\n`
	if box.Owner != "" {
		label += dotEscape(box.Owner) + `\n`
	}
	if len(box.Actions) > 0 {
		label += strings.Join(dotLines(lines(box.Actions)), `\l`) + `\l`
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
