package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// printer writes nodes in block style, with their comments.
type printer struct {
	out strings.Builder
	err error
}

// document returns the text of a document with all its comments.
func document(root *yaml.Node) (string, error) {
	var p printer
	p.lines(0, root.HeadComment)
	if len(root.Content) == 0 {
		p.out.WriteString(p.value(root, 0) + "\n")
	} else {
		p.mapping(root, 0, "")
	}
	p.lines(0, root.FootComment)
	return p.out.String(), p.err
}

func (p *printer) lines(indent int, comments ...string) {
	for _, text := range comments {
		for line := range strings.Lines(text) {
			p.out.WriteString(strings.Repeat(" ", indent) + strings.TrimRight(line, "\n") + "\n")
		}
	}
}

// mapping writes entries; dash is the prefix of the first one.
func (p *printer) mapping(n *yaml.Node, indent int, dash string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		begin := strings.Repeat(" ", indent)
		if i == 0 && dash != "" {
			begin = dash
		}
		p.lines(len(begin)-len(strings.TrimLeft(begin, " ")), key.HeadComment, value.HeadComment)
		p.entry(begin+p.value(key, indent)+":", value, indent, key.LineComment, value.LineComment)
	}
}

// entry writes the beginning of a line and a value, in the same line or below it.
func (p *printer) entry(line string, value *yaml.Node, indent int, beside ...string) {
	below := len(value.Content) > 0
	if below && value.Anchor != "" {
		line += " &" + value.Anchor
	} else if !below {
		line += " " + p.value(value, indent+2)
	}
	comments := strings.TrimSpace(strings.Join(beside, " "))
	if strings.Contains(line, "\n") {
		// A comment cannot stand beside a value of several lines.
		p.lines(indent, comments)
		comments = ""
	}
	p.out.WriteString(strings.TrimRight(line+" "+comments, " ") + "\n")
	if below {
		p.collection(value, indent+2)
	}
	p.lines(indent+2, value.FootComment)
}

func (p *printer) collection(n *yaml.Node, indent int) {
	if n.Kind == yaml.MappingNode {
		p.mapping(n, indent, "")
		return
	}
	dash := strings.Repeat(" ", indent) + "-"
	for _, item := range n.Content {
		p.lines(indent, item.HeadComment)
		if item.Kind == yaml.MappingNode && len(item.Content) > 0 && item.Anchor == "" {
			p.lines(indent, item.LineComment)
			p.mapping(item, indent+2, dash+" ")
			p.lines(indent+2, item.FootComment)
		} else {
			p.entry(dash, item, indent, item.LineComment)
		}
	}
}

// value returns the text of a scalar, an alias, or an empty collection.
func (p *printer) value(n *yaml.Node, indent int) string {
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
		p.err = errors.New("it has a key that is no text")
		return ""
	case n.Style&yaml.LiteralStyle != 0 && strings.TrimLeft(n.Value, " \n") == n.Value && strings.TrimRight(n.Value, "\n")+"\n" == n.Value:
		return before + "|\n" + strings.Repeat(" ", indent) + strings.ReplaceAll(strings.TrimSuffix(n.Value, "\n"), "\n", "\n"+strings.Repeat(" ", indent))
	case n.Style&^yaml.TaggedStyle == 0 && !strings.Contains(n.Value, "\n"):
		return before + n.Value
	}
	return before + p.quoted(n.Value)
}

// quoted returns a text in double quotes. YAML reads the quotes of JSON.
func (p *printer) quoted(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	p.err = errors.Join(p.err, encoder.Encode(text))
	return strings.TrimSuffix(out.String(), "\n")
}
