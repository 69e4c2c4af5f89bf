package format

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/entail-dev/entail/services/policy/internal/tree"
)

// shape lists the keys of a mapping of the language in order.
type shape []field

// field is a key, with the shape of its value or of the items of its value.
type field struct {
	key   string
	alias string
	of    shape
	// verbatim is true if the value does not belong to the language.
	verbatim bool
}

const keyName = "name"

// manifest returns the shape of a manifest. Its metadata and status do not belong to the policy.
func manifest() shape {
	store := field{key: "storeRef", of: shape{{key: keyName}, {key: "cluster"}}}
	return shape{
		{key: "apiVersion"},
		{key: "kind"},
		{key: "metadata", verbatim: true},
		{key: "spec", of: append(shape{store}, top()...)},
		{key: "status", verbatim: true},
	}
}

// top returns the shape of a document.
func top() shape {
	reference := shape{{key: keyName}}
	return shape{
		{key: "resourceTypes", of: shape{
			{key: keyName},
			{key: "idPrefix"},
			{key: "relationships", of: shape{{key: "relation"}, {key: "targetTypes", of: reference}}},
		}},
		{key: "unions", of: shape{{key: keyName}, {key: "resourceTypes", alias: "resourceTypeNames", of: reference}}},
		{key: "actions", of: reference},
		{key: "actionBindings", of: shape{
			{key: "actionName"},
			{key: "typeName"},
			{key: "conditions", of: shape{{key: "roleBinding"}, {key: "relationshipAction", of: shape{{key: "relation"}, {key: "actionName"}}}}},
		}},
	}
}

// arrangeDocument arranges the content of a document. A comment at the beginning stays there, whatever key comes first.
func arrangeDocument(root *yaml.Node) {
	if root.Kind != yaml.MappingNode || len(root.Content) == 0 {
		return
	}
	first := root.Content[0]
	comment := first.HeadComment
	first.HeadComment = ""
	shape := top()
	if hasKey(root, "kind") {
		shape = manifest()
	}
	arrange(root, shape)
	if first = root.Content[0]; comment != "" {
		first.HeadComment = strings.TrimSuffix(comment+"\n"+first.HeadComment, "\n")
	}
}

// hasKey reports whether a mapping has a key.
func hasKey(n *yaml.Node, key string) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// plain matches texts that need no quotes in any position.
var plain = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

// arrange puts a value and its content into block style, and normalizes and sorts its keys.
func arrange(n *yaml.Node, s shape) {
	if n.Kind == yaml.AliasNode {
		return
	}
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" && (!tree.IsText(n.Value) || !plain.MatchString(n.Value)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	if n.Kind == yaml.MappingNode {
		arrangeFields(n, s)
	}
	if n.Kind != yaml.SequenceNode {
		return
	}
	for _, item := range n.Content {
		if item.Kind == yaml.ScalarNode {
			wrapInName(item)
		}
		arrange(item, s)
	}
}

func arrangeFields(n *yaml.Node, s shape) {
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		rank := s.rank(key.Value)
		if rank == len(s) {
			continue
		}
		key.Value, key.Style = s[rank].key, 0
		if s[rank].alias != "" && value.Kind == yaml.ScalarNode && value.ShortTag() != "!!null" {
			only := &yaml.Node{Kind: yaml.ScalarNode, Tag: value.Tag, Value: value.Value, Anchor: value.Anchor, LineComment: value.LineComment}
			*value = yaml.Node{Kind: yaml.SequenceNode, HeadComment: value.HeadComment, Content: []*yaml.Node{only}}
		}
		if !s[rank].verbatim {
			arrange(value, s[rank].of)
		}
	}
	pairs := slices.Collect(slices.Chunk(n.Content, 2))
	slices.SortStableFunc(pairs, func(a, b []*yaml.Node) int { return cmp.Compare(s.rank(a[0].Value), s.rank(b[0].Value)) })
	n.Content = slices.Concat(pairs...)
}

// wrapInName replaces the item x by `name: x`.
func wrapInName(item *yaml.Node) {
	key := &yaml.Node{Kind: yaml.ScalarNode, Value: keyName}
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: item.Tag, Style: item.Style, Value: item.Value, Anchor: item.Anchor, LineComment: item.LineComment}
	*item = yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, value}, HeadComment: item.HeadComment, FootComment: item.FootComment}
}

// rank returns the position of a key in its mapping. Unknown keys, such as merge keys, come last in their own order.
func (s shape) rank(key string) int {
	for i, f := range s {
		if strings.EqualFold(key, f.key) || strings.EqualFold(key, f.alias) {
			return i
		}
	}
	return len(s)
}
