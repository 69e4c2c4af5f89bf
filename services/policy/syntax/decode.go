package syntax

import (
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/tree"
)

// decoder converts nodes to a document.
type decoder struct {
	document *Document
	findings *policy.Collector
	// manifest is true if the document is in a manifest. The custom resource accepts only the canonical form.
	manifest bool
}

func (d *decoder) decode(root tree.Node) {
	top := d.fields(d.unwrap(root), "a document", "resourceTypes", "unions", "actions", "actionBindings")
	d.document.ResourceTypes = decodeEach(d, top[0], "resourceTypes", d.resourceType)
	d.document.Unions = decodeEach(d, top[1], "unions", d.union)
	d.document.Actions = decodeEach(d, top[2], "actions", func(n tree.Node) Action {
		return Action{Name: d.name(d.fields(n, "an action", "name")[0], "name"), At: at(n)}
	})
	d.document.Bindings = decodeEach(d, top[3], "actionBindings", d.binding)
}

func (d *decoder) resourceType(n tree.Node) ResourceType {
	fields := d.fields(n, "a resource type", "name", "idPrefix", "relationships")
	return ResourceType{
		Name: d.name(fields[0], "name"), IDPrefix: d.name(fields[1], "idPrefix"),
		Relationships: decodeEach(d, fields[2], "relationships", d.relationship), At: at(n),
	}
}

func (d *decoder) relationship(n tree.Node) Relationship {
	fields := d.fields(n, "a relationship", "relation", "targetTypes")
	return Relationship{
		Relation: d.name(fields[0], "relation"), Targets: decodeEach(d, fields[1], "targetTypes", d.reference), At: at(n),
	}
}

func (d *decoder) union(n tree.Node) Union {
	fields := d.fields(n, "a union", "name", "resourceTypes", "resourceTypeNames")
	members, also := fields[1], fields[2]
	d.reportFileOnlyForm(also.Line == 0, also, "it has the key resourceTypeNames", "write resourceTypes")
	if also.Kind == tree.Scalar {
		also = tree.Node{Kind: tree.Sequence, Children: []tree.Node{also}, Line: also.Line, Column: also.Column}
	}
	if members.Line > 0 && also.Line > 0 {
		d.report(later(members, also), policy.CodeDupKey,
			"resourceTypes and resourceTypeNames are the same key, given twice", "keep resourceTypes, with the members of both")
	}
	return Union{
		Name: d.name(fields[0], "name"), At: at(n),
		Members: append(decodeEach(d, members, "resourceTypes", d.reference), decodeEach(d, also, "resourceTypeNames", d.reference)...),
	}
}

// reference reads a reference to a type: `name: x`, or only x.
func (d *decoder) reference(n tree.Node) Name {
	if n.Kind == tree.Mapping {
		name := d.name(d.fields(n, "a reference to a type", "name")[0], "name")
		if name.At == (policy.Position{}) {
			name.At = at(n)
		}
		return name
	}
	d.reportFileOnlyForm(n.Kind != tree.Scalar, n, "it has a type that is just its name", "write `name: "+n.Text+"`")
	return d.name(n, "the name of a type")
}

func (d *decoder) binding(n tree.Node) Binding {
	fields := d.fields(n, "an action binding", "actionName", "typeName", "conditions")
	return Binding{
		Action: d.name(fields[0], "actionName"), Type: d.name(fields[1], "typeName"),
		Conditions: decodeEach(d, fields[2], "conditions", d.condition), At: at(n),
	}
}

func (d *decoder) condition(n tree.Node) Condition {
	fields := d.fields(n, "a condition", "roleBinding", "relationshipAction")
	c := Condition{At: at(n)}
	if role := fields[0]; role.Line > 0 {
		// The key counts, because an empty mapping is its only valid value.
		c.RoleBinding = true
		d.fields(role, "roleBinding")
	}
	if step := fields[1]; step.Line > 0 {
		fields := d.fields(step, "a relationshipAction", "relation", "actionName")
		c.RelationshipAction = &RelationshipAction{
			Relation: d.name(fields[0], "relation"), Action: d.name(fields[1], "actionName"), At: at(step),
		}
	}
	return c
}

// name reads a name. The caller decides whether a missing name is an error.
func (d *decoder) name(n tree.Node, what string) Name {
	if n.Kind == tree.Sequence || n.Kind == tree.Mapping {
		d.unreadable(n, what+" is "+n.Kind.String()+", not a text", "write one name")
	}
	d.text(n, maxText)
	return Name{Text: n.Text, At: at(n)}
}

// decodeEach reads a list. A list that is absent or has no value is empty.
func decodeEach[T any](d *decoder, list tree.Node, what string, decode func(tree.Node) T) []T {
	if list.Kind == tree.Null {
		return nil
	}
	if list.Kind != tree.Sequence {
		d.unreadable(list, what+" is "+list.Kind.String()+", not a list", "begin each item of the list with a dash")
		return nil
	}
	d.length(list, what)
	items := make([]T, 0, len(list.Children))
	for _, item := range list.Children {
		items = append(items, decode(item))
	}
	return items
}

// report reports an error in a part that could be read.
func (d *decoder) report(n tree.Node, code policy.Code, message, hint string) *policy.Diagnostic {
	d.document.faulty = true
	return d.findings.Add(d.document.Source.At(at(n)), code, message, hint)
}

// unreadable reports a value of the wrong kind, whose content is lost.
func (d *decoder) unreadable(n tree.Node, message, hint string) {
	d.document.incomplete = true
	d.report(n, policy.CodeKind, message, hint)
}

func at(n tree.Node) policy.Position { return policy.TextPosition(n.Line, n.Column) }

func later(a, b tree.Node) tree.Node {
	if a.Line > b.Line || a.Line == b.Line && a.Column > b.Column {
		return a
	}
	return b
}
