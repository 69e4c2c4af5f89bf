package tree

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseWithLibrary uses the YAML library to read a document that the scanner declined.
func parseWithLibrary(text string, line int, budget *ParseBudget, declined *blockScanner) (Node, error) {
	if len(text) > budget.LibraryBytes {
		return Node{}, &ParseError{
			Line: int32(line), Column: 1, Limit: true,
			Message: "the file uses more of YAML than plain block lists and mappings, and is too large for that",
			Hint:    "write one key or item a line, without anchors, flow style and texts of several lines, or split the policy",
		}
	}
	budget.LibraryBytes -= len(text)
	if strings.HasPrefix(text, "%YAML 1.2") {
		// The library reads YAML 1.2, but rejects this directive.
		text = "#" + text[1:]
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return Node{}, librarySyntaxError(err, line, declined)
	}
	if document.Kind == 0 {
		return Node{}, nil
	}
	g := libraryConverter{offset: int32(line) - 1, budget: budget}
	if err := g.checkNodeCount(document.Content[0]); err != nil {
		return Node{}, err
	}
	root, err := g.convertNode(document.Content[0], 0)
	if root.Kind == Null {
		return Node{}, err
	}
	return root, err
}

// libraryConverter converts the nodes of the library.
type libraryConverter struct {
	offset int32
	budget *ParseBudget
}

// checkNodeCount checks the number of nodes before it converts any. An alias counts as its whole content each time.
func (g *libraryConverter) checkNodeCount(root *yaml.Node) error {
	most := g.budget.Nodes
	counts := map[*yaml.Node]int{}
	var count func(n *yaml.Node) int
	count = func(n *yaml.Node) int {
		if known, found := counts[n]; found {
			return known
		}
		// A node that contains itself exceeds the budget.
		counts[n] = most + 1
		total := 1
		if n.Alias != nil {
			total += count(n.Alias)
		}
		for _, child := range n.Content {
			total = min(total+count(child), most+1)
		}
		counts[n] = total
		return total
	}
	if count(root) > most {
		return tooManyError(int32(root.Line)+g.offset, int32(root.Column))
	}
	return nil
}

func (g *libraryConverter) convertNode(from *yaml.Node, depth int) (Node, error) {
	n := Node{Line: int32(from.Line) + g.offset, Column: int32(from.Column)}
	if g.budget.Nodes--; g.budget.Nodes < 0 {
		return n, tooManyError(n.Line, n.Column)
	}
	if depth > g.budget.Depth {
		return n, tooDeepError(n.Line, n.Column, g.budget.Depth)
	}
	if from.Style&yaml.TaggedStyle != 0 && !strings.HasPrefix(from.ShortTag(), "!!") {
		return n, &ParseError{
			Line: n.Line, Column: n.Column,
			Message: fmt.Sprintf("the tag %.64s means nothing here", from.Tag), Hint: "remove the tag",
		}
	}
	switch from.Kind {
	case yaml.AliasNode:
		return g.convertNode(from.Alias, depth)
	case yaml.SequenceNode:
		return g.convertSequence(n, from.Content, depth)
	case yaml.MappingNode:
		return g.convertMapping(n, from.Content, depth)
	default:
		if from.ShortTag() != "!!null" {
			n.Kind, n.Text, n.Plain = Scalar, from.Value, from.Style == 0
		}
		return n, nil
	}
}

func (g *libraryConverter) convertSequence(n Node, items []*yaml.Node, depth int) (Node, error) {
	n.Kind = Sequence
	for _, item := range items {
		child, err := g.convertNode(item, depth+1)
		if err != nil {
			return n, err
		}
		n.Children = append(n.Children, child)
	}
	return n, nil
}

func (g *libraryConverter) convertMapping(n Node, content []*yaml.Node, depth int) (Node, error) {
	n.Kind = Mapping
	var merged []Node
	for i := 0; i+1 < len(content); i += 2 {
		key, err := g.convertNode(content[i], depth+1)
		if err != nil {
			return n, err
		}
		value, err := g.convertNode(content[i+1], depth+1)
		if err != nil {
			return n, err
		}
		switch {
		case content[i].ShortTag() == "!!merge":
			merged = append(merged, value)
			continue
		case key.Kind == Null:
			key.Kind, key.Text = Scalar, content[i].Value
		}
		n.Children = append(n.Children, key, value)
	}
	return n.mergeEntries(merged)
}

// mergeEntries adds the entries of mappings, and of lists of mappings, whose keys are absent.
func (n Node) mergeEntries(sources []Node) (Node, error) {
	if len(sources) == 0 {
		return n, nil
	}
	present := map[string]bool{}
	markKeysPresent(present, n.Children)
	for _, source := range sources {
		from := []Node{source}
		if source.Kind == Sequence {
			from = source.Children
		}
		for _, mapping := range from {
			if mapping.Kind != Mapping {
				return n, &ParseError{
					Line: mapping.Line, Column: mapping.Column, Message: "<< takes a mapping or a list of mappings, not " + mapping.Kind.String(),
					Hint: "merge an alias of a mapping: `<<: *name`",
				}
			}
			n.Children = append(n.Children, takeAbsentEntries(present, mapping.Children)...)
		}
	}
	return n, nil
}

// takeAbsentEntries returns the entries whose keys are not present, and marks their keys as present.
func takeAbsentEntries(present map[string]bool, children []Node) []Node {
	var entries []Node
	for i := 0; i < len(children); i += 2 {
		if key := strings.ToLower(children[i].Text); !present[key] {
			entries = append(entries, children[i], children[i+1])
		}
	}
	markKeysPresent(present, children)
	return entries
}

func markKeysPresent(present map[string]bool, children []Node) {
	for i := 0; i < len(children); i += 2 {
		present[strings.ToLower(children[i].Text)] = true
	}
}

// librarySyntaxError returns the error of the library with its place. The library and the scanner both report a place at or
// before the mistake, so the later one is closer.
func librarySyntaxError(err error, first int, declined *blockScanner) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	e := &ParseError{Line: declined.line, Column: declined.currentColumn(), Hint: "check indentation, quotes and brackets"}
	if number, rest, found := strings.Cut(strings.TrimPrefix(message, "line "), ": "); found {
		if line, err := strconv.ParseInt(number, 10, 32); err == nil {
			message = rest
			if line := int32(line) + int32(first) - 1; line > e.Line && !strings.Contains(rest, "end of stream") {
				e.Line, e.Column = line, 1
			}
		}
	}
	e.Message = "this is not YAML: " + message
	if e.Line == declined.line && declined.at < declined.next && declined.text[declined.at] == '\t' {
		e.Hint = "indent with spaces; YAML allows no tabs there"
	}
	return e
}
