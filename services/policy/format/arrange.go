package format

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/entail-dev/entail/services/policy/internal/tree"
)

// mappingShape lists the keys of a mapping of the language in order.
type mappingShape []shapeField

// shapeField is a key, with the shape of its value or of the items of its value.
type shapeField struct {
	key   string
	alias string
	of    mappingShape
	// verbatim is true if the value does not belong to the language.
	verbatim bool
}

const keyName = "name"

// manifestShape returns the shape of a manifest. Its metadata and status do not belong to the policy.
func manifestShape() mappingShape {
	store := shapeField{key: "storeRef", of: mappingShape{{key: keyName}, {key: "cluster"}}}
	return mappingShape{
		{key: "apiVersion"},
		{key: "kind"},
		{key: "metadata", verbatim: true},
		{key: "spec", of: append(mappingShape{store}, documentShape()...)},
		{key: "status", verbatim: true},
	}
}

// documentShape returns the shape of a document.
func documentShape() mappingShape {
	reference := mappingShape{{key: keyName}}
	return mappingShape{
		{key: "resourceTypes", of: mappingShape{
			{key: keyName},
			{key: "idPrefix"},
			{key: "relationships", of: mappingShape{{key: "relation"}, {key: "targetTypes", of: reference}}},
		}},
		{key: "unions", of: mappingShape{{key: keyName}, {key: "resourceTypes", alias: "resourceTypeNames", of: reference}}},
		{key: "actions", of: reference},
		{key: "actionBindings", of: mappingShape{
			{key: "actionName"},
			{key: "typeName"},
			{key: "conditions", of: mappingShape{{key: "roleBinding"}, {key: "relationshipAction", of: mappingShape{{key: "relation"}, {key: "actionName"}}}}},
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
	shape := documentShape()
	if hasKey(root, "kind") {
		shape = manifestShape()
	}
	arrangeNode(root, shape)
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

// arrangeNode puts a value and its content into block style, and normalizes and sorts its keys.
func arrangeNode(n *yaml.Node, s mappingShape) {
	if n.Kind == yaml.AliasNode {
		return
	}
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" && (!tree.IsTextScalar(n.Value) || !plain.MatchString(n.Value)) {
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
			wrapItemInNameKey(item)
		}
		arrangeNode(item, s)
	}
}

func arrangeFields(n *yaml.Node, s mappingShape) {
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		rank := s.keyRank(key.Value)
		if rank == len(s) {
			continue
		}
		key.Value, key.Style = s[rank].key, 0
		if s[rank].alias != "" && value.Kind == yaml.ScalarNode && value.ShortTag() != "!!null" {
			only := &yaml.Node{Kind: yaml.ScalarNode, Tag: value.Tag, Value: value.Value, Anchor: value.Anchor, LineComment: value.LineComment}
			*value = yaml.Node{Kind: yaml.SequenceNode, HeadComment: value.HeadComment, Content: []*yaml.Node{only}}
		}
		if !s[rank].verbatim {
			arrangeNode(value, s[rank].of)
		}
	}
	pairs := slices.Collect(slices.Chunk(n.Content, 2))
	slices.SortStableFunc(pairs, func(a, b []*yaml.Node) int { return cmp.Compare(s.keyRank(a[0].Value), s.keyRank(b[0].Value)) })
	n.Content = slices.Concat(pairs...)
}

// wrapItemInNameKey replaces the item x by `name: x`.
func wrapItemInNameKey(item *yaml.Node) {
	key := &yaml.Node{Kind: yaml.ScalarNode, Value: keyName}
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: item.Tag, Style: item.Style, Value: item.Value, Anchor: item.Anchor, LineComment: item.LineComment}
	*item = yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, value}, HeadComment: item.HeadComment, FootComment: item.FootComment}
}

// keyRank returns the position of a key in its mapping. Unknown keys, such as merge keys, come last in their own order.
func (s mappingShape) keyRank(key string) int {
	for i, f := range s {
		if strings.EqualFold(key, f.key) || strings.EqualFold(key, f.alias) {
			return i
		}
	}
	return len(s)
}
