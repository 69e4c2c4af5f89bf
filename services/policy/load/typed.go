package load

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
)

// Typed gives every part of a document that was not read from a file its place: the field of the
// object that holds it. Root is the path of the field that holds the four lists, such as "spec".
func Typed(d *policy.Document, root string) {
	p := paths{root}
	for i := range d.ResourceTypes {
		p.resourceType(&d.ResourceTypes[i], fmt.Sprintf("%s.resourceTypes[%d]", root, i))
	}
	for i := range d.Unions {
		u, path := &d.Unions[i], fmt.Sprintf("%s.unions[%d]", root, i)
		u.At, u.Name.At = p.at(path), p.at(path+".name")
		p.names(u.Members, path+".resourceTypes")
	}
	for i := range d.Actions {
		a, path := &d.Actions[i], fmt.Sprintf("%s.actions[%d]", root, i)
		a.At, a.Name.At = p.at(path), p.at(path+".name")
	}
	for i := range d.Bindings {
		p.binding(&d.Bindings[i], fmt.Sprintf("%s.actionBindings[%d]", root, i))
	}
	d.Source.Paths = p
}

// paths are the fields that have been met; a position is an index into them.
type paths []string

func (p *paths) at(path string) policy.Position {
	*p = append(*p, path)
	return policy.Position{Column: int32(len(*p) - 1)}
}

func (p *paths) names(names []policy.Name, path string) {
	for i := range names {
		names[i].At = p.at(fmt.Sprintf("%s[%d]", path, i))
	}
}

func (p *paths) resourceType(t *policy.ResourceType, path string) {
	t.At, t.Name.At, t.IDPrefix.At = p.at(path), p.at(path+".name"), p.at(path+".idPrefix")
	for i := range t.Relationships {
		r, path := &t.Relationships[i], fmt.Sprintf("%s.relationships[%d]", path, i)
		r.At, r.Relation.At = p.at(path), p.at(path+".relation")
		p.names(r.Targets, path+".targetTypes")
	}
}

func (p *paths) binding(b *policy.Binding, path string) {
	b.At, b.Action.At, b.Type.At = p.at(path), p.at(path+".actionName"), p.at(path+".typeName")
	for i := range b.Conditions {
		c, path := &b.Conditions[i], fmt.Sprintf("%s.conditions[%d]", path, i)
		c.At = p.at(path)
		if step := c.RelationshipAction; step != nil {
			path += ".relationshipAction"
			step.At, step.Relation.At, step.Action.At = p.at(path), p.at(path+".relation"), p.at(path+".actionName")
		}
	}
}
