package format

import (
	"cmp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// positionedNode is a node with its parent.
type positionedNode struct {
	*yaml.Node

	parent *positionedNode
	// key is the key of a mapping value; nil for other nodes.
	key *yaml.Node
}

func (s *positionedNode) place() textPlace { return textPlace{s.Line, s.Column} }

func (s *positionedNode) isFlow() bool { return s.Style&yaml.FlowStyle != 0 }

// canFollowComment reports whether comments may precede the node. They may not precede a block below its key.
func (s *positionedNode) canFollowComment() bool {
	return s.parent != nil && (s.key == nil || s.Kind == yaml.ScalarNode || s.Kind == yaml.AliasNode || s.isFlow())
}

// isWithin reports whether the node is in a collection.
func (s *positionedNode) isWithin(collection *yaml.Node) bool {
	for s = s.parent; s != nil; s = s.parent {
		if s.Node == collection {
			return true
		}
	}
	return false
}

// flattenNodes returns all nodes in the order of the text. A collection precedes its content.
func flattenNodes(n *yaml.Node, parent *positionedNode, key *yaml.Node) []*positionedNode {
	s := &positionedNode{Node: n, parent: parent, key: key}
	all := []*positionedNode{s}
	for i, child := range n.Content {
		key = nil
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			key = n.Content[i-1]
		}
		all = append(all, flattenNodes(child, s, key)...)
	}
	return all
}

// attachComments attaches every comment to a node. A comment at the end of a line belongs to the node before it. A comment on
// its own line belongs to the next node, unless its block ends before that.
func attachComments(root *yaml.Node, comments []placedComment) {
	all := flattenNodes(root, nil, nil)
	slices.SortStableFunc(all, func(a, b *positionedNode) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	for _, c := range comments {
		following, _ := slices.BinarySearchFunc(all, c.textPlace, func(s *positionedNode, p textPlace) int {
			if s.place().isBefore(p) {
				return -1
			}
			return 1
		})
		previous := all[:following]
		if !c.alone && attachToPrevious(c, previous) {
			continue
		}
		around := root
		if following > 0 {
			around = collectionAtEnd(c, previous[following-1])
		}
		next := slices.IndexFunc(all[following:], (*positionedNode).canFollowComment)
		switch {
		case next >= 0 && all[following+next].isWithin(around):
			appendLine(&all[following+next].HeadComment, c.text)
		case len(around.Content) == 0:
			appendLine(&around.HeadComment, c.text)
		default:
			appendLine(&around.FootComment, c.text)
		}
	}
}

// attachToPrevious attaches a comment to the node before it in its line, and reports whether one exists.
func attachToPrevious(c placedComment, previous []*positionedNode) bool {
	if c.closed != (textPlace{}) {
		i := slices.IndexFunc(previous, func(s *positionedNode) bool { return s.place() == c.closed && s.isFlow() })
		if i < 0 {
			return false
		}
		if s := previous[i]; s.key != nil && s.LineComment == "" {
			s.LineComment = c.text
		} else {
			appendLine(&s.HeadComment, c.text)
		}
		return true
	}
	if len(previous) == 0 || previous[len(previous)-1].Line != c.line {
		return false
	}
	if s := previous[len(previous)-1]; s.LineComment == "" {
		s.LineComment = c.text
	} else {
		appendLine(&s.HeadComment, c.text)
	}
	return true
}

// collectionAtEnd returns the collection at whose end a comment is: the brackets around it, or the block that its column
// indicates.
func collectionAtEnd(c placedComment, previous *positionedNode) *yaml.Node {
	var found *positionedNode
	for s := previous; s != nil; s = s.parent {
		switch {
		case s.isFlow() && s.place() == c.inside:
			return s.Node
		case s.Kind == yaml.ScalarNode || s.Kind == yaml.AliasNode || s.isFlow() || s.Column > c.column:
		case found == nil || found.Column == s.Column:
			found = s
		}
		if s.parent == nil && found == nil {
			found = s
		}
	}
	return found.Node
}

func appendLine(to *string, text string) {
	if *to != "" {
		*to += "\n"
	}
	*to += text
}
