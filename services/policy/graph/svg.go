package graph

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// RenderSVG returns the graph as a self-contained picture. It returns an error if the graph is too large; use a filter then.
func (g *Graph) RenderSVG() ([]byte, error) {
	d, err := newDrawing(g)
	if err != nil {
		return nil, err
	}
	d.reduceCrossings()
	d.placeVertices()
	p := svgPainter{brief: g.Brief}
	p.writeHeader(d, legendLines(g))
	for _, l := range d.lines {
		p.drawLine(l)
	}
	for _, n := range d.vertices {
		p.drawVertex(n)
	}
	p.b.WriteString("</svg>\n")
	return []byte(p.b.String()), nil
}

const style = `<style>
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328}
.name{font-size:14px;font-weight:bold}.owner,.legend{fill:#656d76}.relation{font-style:italic;font-weight:bold;fill:#0550ae}
.box{fill:#f6f8fa;stroke:#57606a}.beside{stroke-dasharray:5 4;fill:#fff}.label{fill:#eaf2fb}.line{fill:none;stroke:#6e7781;stroke-width:1.3}
</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0L10 5L0 10z" fill="#6e7781"/></marker></defs>
`

// legendLines returns the lines that explain a drawing.
func legendLines(g *Graph) []string {
	all := []string{
		"An arrow follows a relation: a user with an action on the type at its head has the action on the type at its tail.",
		"● role bindings of the resource can give the action, ○ only relations can.",
	}
	if slices.ContainsFunc(g.Nodes, func(b *Node) bool { return b.Beside }) {
		all = append(all, "A dashed box is not in the selection, but is connected with a box that is.")
	}
	if slices.ContainsFunc(g.Nodes, func(b *Node) bool { return b.Union }) {
		all = append(all, "A round box is a union: → and its name stand for arrows to all its members.")
	}
	if g.Brief {
		all = append(all, "There are too many types to list actions. To see fewer types with their actions, use",
			"--focus TYPE, --types, --owners or --actions with an expression, --collapse '.*'.")
	}
	return all
}

// svgPainter writes a drawing.
type svgPainter struct {
	b     strings.Builder
	brief bool
}

func (p *svgPainter) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

func (p *svgPainter) writeText(x, y int, class, s string) {
	p.printf("<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, escapeSVG(printableText(s)))
}

func (p *svgPainter) writeHeader(d *graphDrawing, legend []string) {
	right, bottom := 0, margin
	for _, n := range d.vertices {
		right, bottom = max(right, n.x+n.width+margin), max(bottom, n.y+n.height+margin)
	}
	for _, s := range legend {
		right = max(right, 2*margin+utf8.RuneCountInString(s)*letterTenths/10)
	}
	height := bottom + len(legend)*lineHeight + margin
	p.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n", right, height, right, height)
	p.b.WriteString("<title>Policy</title>\n" + style)
	p.printf("<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", right, height)
	for i, s := range legend {
		p.printf("<text x=\"%d\" y=\"%d\" class=\"legend\">%s</text>\n", margin, bottom+(i+1)*lineHeight, escapeSVG(s))
	}
}

// drawLine draws curves between columns, and straight lines through the columns that it passes.
func (p *svgPainter) drawLine(l *arrowLine) {
	last := len(l.vertices) - 1
	leftwards := l.vertices[last].column < l.vertices[0].column
	x, y := l.vertices[0].sideX(leftwards), l.from
	p.printf("<path class=\"line\" d=\"M%d %d", x, y)
	for i, n := range l.vertices[1:] {
		toX, toY := n.sideX(!leftwards), n.connectionY()
		if i+1 == last {
			toY = l.to
		}
		p.printf("C%d %d %d %d %d %d", (x+toX)/2, y, (x+toX)/2, toY, toX, toY)
		x, y = toX, toY
		if i+1 < last {
			x = n.sideX(leftwards)
			p.printf("H%d", x)
		}
	}
	p.b.WriteString("\"")
	if l.tip {
		p.b.WriteString(" marker-end=\"url(#head)\"")
	}
	p.b.WriteString("/>\n")
}

func (n *vertex) sideX(left bool) int {
	if left {
		return n.x
	}
	return n.x + n.width
}

func (p *svgPainter) drawVertex(n *vertex) {
	switch {
	case n.label != nil:
		p.drawLabel(n.label, n.x, n.y)
	case n.box != nil:
		p.printf("<g id=\"%s\">\n", escapeSVG(n.box.uniqueID()))
		if hint := n.box.expandFlag(); hint != "" {
			p.printf("<title>%s</title>\n", escapeSVG(printableText(hint)))
		}
		p.drawLoops(n)
		p.drawBox(n)
		p.b.WriteString("</g>\n")
	}
}

func (p *svgPainter) drawBox(n *vertex) {
	class, round := "box", 5
	switch {
	case n.box.Beside:
		class = "box beside"
	case n.box.Union:
		class, round = "box union", n.body/2
	}
	p.printf("<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/>\n", class, n.x, n.y, n.width, n.body, round)
	x, y := n.x+padding, n.y+padding+lineHeight-4
	p.writeText(x, y, "name", n.box.Name)
	if kind := n.box.subtitle(); kind != "" {
		y += lineHeight
		p.writeText(x, y, "owner", kind)
	}
	for _, line := range listLines(n.box.Actions, p.brief) {
		y += lineHeight
		p.writeText(x, y, "action", line)
	}
}

// drawLabel writes the relation and its flows.
func (p *svgPainter) drawLabel(a *Edge, x, y int) {
	w, h := a.labelSize(p.brief)
	p.printf("<rect class=\"label\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", x, y, w, h)
	x, y = x+padding, y+padding/2+lineHeight-4
	p.writeText(x, y, "relation", a.Relation)
	for _, line := range a.labelLines(p.brief) {
		y += lineHeight
		p.writeText(x, y, "flow", line)
	}
}

// drawLoops draws the arrows of a box to itself as one arrow below it.
func (p *svgPainter) drawLoops(n *vertex) {
	if len(n.loops) == 0 {
		return
	}
	left, right, top, bottom := n.x+loopInset, n.x+n.width-loopInset, n.y+n.body, n.y+n.height
	p.printf("<path class=\"line\" marker-end=\"url(#head)\" d=\"M%d %dV%dQ%d %d %d %dH%dQ%d %d %d %dV%d\"/>\n",
		left, top, bottom-8, left, bottom, left+8, bottom, right-8, right, bottom, right, bottom-8, top+1)
	y := top + loopGap
	for _, a := range n.loops {
		p.drawLabel(a, left+padding, y)
		_, h := a.labelSize(p.brief)
		y += h + loopGap
	}
}

func escapeSVG(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(s)
}
