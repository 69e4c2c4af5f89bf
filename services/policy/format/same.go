package format

import (
	"reflect"
	"slices"

	"github.com/entail-dev/entail/services/policy/syntax"
)

// equalContent reports whether documents have the same content, apart from positions.
func equalContent(a, b []*syntax.Document) bool {
	return slices.EqualFunc(a, b, func(a, b *syntax.Document) bool {
		return reflect.DeepEqual(withoutPositions(a), withoutPositions(b))
	})
}

// withoutPositions returns the content of a document without positions.
func withoutPositions(d *syntax.Document) any {
	var says []any
	for _, t := range d.ResourceTypes {
		says = append(says, t.Name.Text, t.IDPrefix.Text)
		for _, r := range t.Relationships {
			says = append(says, r.Relation.Text, nameTexts(r.Targets))
		}
	}
	for _, u := range d.Unions {
		says = append(says, u.Name.Text, nameTexts(u.Members))
	}
	for _, a := range d.Actions {
		says = append(says, a.Name.Text)
	}
	for _, b := range d.Bindings {
		says = append(says, b.Action.Text, b.Type.Text)
		for _, c := range b.Conditions {
			says = append(says, c.RoleBinding)
			if c.RelationshipAction != nil {
				says = append(says, c.RelationshipAction.Relation.Text, c.RelationshipAction.Action.Text)
			}
		}
	}
	return append(says, d.Source.Owner, len(d.ResourceTypes), len(d.Unions), len(d.Actions), len(d.Bindings))
}

func nameTexts(names []syntax.Name) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = n.Text
	}
	return all
}
