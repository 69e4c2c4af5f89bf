package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nodePrinter writes nodes in block style, with their comments.
type nodePrinter struct {
	out strings.Builder
	err error
}

// printDocument returns the text of a document with all its comments.
func printDocument(root *yaml.Node) (string, error) {
	var p nodePrinter
	p.printCommentLines(0, root.HeadComment)
	if len(root.Content) == 0 {
		p.out.WriteString(p.scalarText(root, 0) + "\n")
	} else {
		p.printMapping(root, 0, "")
	}
	p.printCommentLines(0, root.FootComment)
	return p.out.String(), p.err
}

func (p *nodePrinter) printCommentLines(indent int, comments ...string) {
	for _, text := range comments {
		for line := range strings.Lines(text) {
			p.out.WriteString(strings.Repeat(" ", indent) + strings.TrimRight(line, "\n") + "\n")
		}
	}
}

// printMapping writes entries; dash is the prefix of the first one.
func (p *nodePrinter) printMapping(n *yaml.Node, indent int, dash string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		begin := strings.Repeat(" ", indent)
		if i == 0 && dash != "" {
			begin = dash
		}
		p.printCommentLines(len(begin)-len(strings.TrimLeft(begin, " ")), key.HeadComment, value.HeadComment)
		p.printEntry(begin+p.scalarText(key, indent)+":", value, indent, key.LineComment, value.LineComment)
	}
}

// printEntry writes the beginning of a line and a value, in the same line or below it.
func (p *nodePrinter) printEntry(line string, value *yaml.Node, indent int, beside ...string) {
	below := len(value.Content) > 0
	if below && value.Anchor != "" {
		line += " &" + value.Anchor
	} else if !below {
		line += " " + p.scalarText(value, indent+2)
	}
	comments := strings.TrimSpace(strings.Join(beside, " "))
	if strings.Contains(line, "\n") {
		// A comment cannot stand beside a value of several lines.
		p.printCommentLines(indent, comments)
		comments = ""
	}
	p.out.WriteString(strings.TrimRight(line+" "+comments, " ") + "\n")
	if below {
		p.printCollection(value, indent+2)
	}
	p.printCommentLines(indent+2, value.FootComment)
}

func (p *nodePrinter) printCollection(n *yaml.Node, indent int) {
	if n.Kind == yaml.MappingNode {
		p.printMapping(n, indent, "")
		return
	}
	dash := strings.Repeat(" ", indent) + "-"
	for _, item := range n.Content {
		p.printCommentLines(indent, item.HeadComment)
		if item.Kind == yaml.MappingNode && len(item.Content) > 0 && item.Anchor == "" {
			p.printCommentLines(indent, item.LineComment)
			p.printMapping(item, indent+2, dash+" ")
			p.printCommentLines(indent+2, item.FootComment)
		} else {
			p.printEntry(dash, item, indent, item.LineComment)
		}
	}
}

// scalarText returns the text of a scalar, an alias, or an empty collection.
func (p *nodePrinter) scalarText(n *yaml.Node, indent int) string {
	before := ""
	if n.Anchor != "" {
		before = "&" + n.Anchor + " "
	}
	if n.Style&yaml.TaggedStyle != 0 {
		before += n.Tag + " "
	}
	switch {
	case n.Kind == yaml.AliasNode:
		return "*" + n.Value
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return before + "[]"
	case n.Kind == yaml.MappingNode && len(n.Content) == 0:
		return before + "{}"
	case n.Kind != yaml.ScalarNode:
		p.err = errors.New("it has a key that is not text")
		return ""
	case n.Style&yaml.LiteralStyle != 0 && strings.TrimLeft(n.Value, " \n") == n.Value && strings.TrimRight(n.Value, "\n")+"\n" == n.Value:
		return before + "|\n" + strings.Repeat(" ", indent) + strings.ReplaceAll(strings.TrimSuffix(n.Value, "\n"), "\n", "\n"+strings.Repeat(" ", indent))
	case n.Style&^yaml.TaggedStyle == 0 && !strings.Contains(n.Value, "\n"):
		return before + n.Value
	}
	return before + p.encodeQuoted(n.Value)
}

// encodeQuoted returns a text in double quotes. YAML reads the quotes of JSON.
func (p *nodePrinter) encodeQuoted(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	p.err = errors.Join(p.err, encoder.Encode(text))
	return strings.TrimSuffix(out.String(), "\n")
}
