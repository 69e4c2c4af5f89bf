package format

import (
	"cmp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// spot is a node, and where it is in its document.
type spot struct {
	*yaml.Node

	parent *spot
	// key is that of a value.
	key *yaml.Node
}

func (s *spot) place() place { return place{s.Line, s.Column} }

func (s *spot) isFlow() bool { return s.Style&yaml.FlowStyle != 0 }

// heads reports whether comments may stand before the node: not of a block that begins under its key.
func (s *spot) heads() bool {
	return s.parent != nil && (s.key == nil || s.Kind == yaml.ScalarNode || s.Kind == yaml.AliasNode || s.isFlow())
}

// within reports whether the node is in a collection.
func (s *spot) within(collection *yaml.Node) bool {
	for s = s.parent; s != nil; s = s.parent {
		if s.Node == collection {
			return true
		}
	}
	return false
}

// spots are all nodes in the order of the text; what contains others comes before them.
func spots(n *yaml.Node, parent *spot, key *yaml.Node) []*spot {
	s := &spot{Node: n, parent: parent, key: key}
	all := []*spot{s}
	for i, child := range n.Content {
		key = nil
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			key = n.Content[i-1]
		}
		all = append(all, spots(child, s, key)...)
	}
	return all
}

// attach gives every comment to a node: what is beside something to that; what stands alone to what
// follows, unless it is in a block that ends before that.
func attach(root *yaml.Node, comments []comment) {
	all := spots(root, nil, nil)
	slices.SortStableFunc(all, func(a, b *spot) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	for _, c := range comments {
		following, _ := slices.BinarySearchFunc(all, c.place, func(s *spot, p place) int {
			if s.place().before(p) {
				return -1
			}
			return 1
		})
		previous := all[:following]
		if !c.alone && beside(c, previous) {
			continue
		}
		around := root
		if following > 0 {
			around = block(c, previous[following-1])
		}
		next := slices.IndexFunc(all[following:], (*spot).heads)
		switch {
		case next >= 0 && all[following+next].within(around):
			join(&all[following+next].HeadComment, c.text)
		case len(around.Content) == 0:
			join(&around.HeadComment, c.text)
		default:
			join(&around.FootComment, c.text)
		}
	}
}

// beside gives a comment to what is before it in its line, and reports whether there is something.
func beside(c comment, previous []*spot) bool {
	if c.closed != (place{}) {
		i := slices.IndexFunc(previous, func(s *spot) bool { return s.place() == c.closed && s.isFlow() })
		if i < 0 {
			return false
		}
		if s := previous[i]; s.key != nil && s.LineComment == "" {
			s.LineComment = c.text
		} else {
			join(&s.HeadComment, c.text)
		}
		return true
	}
	if len(previous) == 0 || previous[len(previous)-1].Line != c.line {
		return false
	}
	if s := previous[len(previous)-1]; s.LineComment == "" {
		s.LineComment = c.text
	} else {
		join(&s.HeadComment, c.text)
	}
	return true
}

// block is the collection at whose end a comment is: brackets around it, or by its column a block around what precedes it.
func block(c comment, previous *spot) *yaml.Node {
	var found *spot
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

func join(to *string, text string) {
	if *to != "" {
		*to += "\n"
	}
	*to += text
}
