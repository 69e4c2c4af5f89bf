package syntax

import (
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/tree"
)

// documentDecoder converts nodes to a document.
type documentDecoder struct {
	document *Document
	findings *policy.DiagnosticCollector
	// manifest is true if the document is in a manifest. The custom resource accepts only the canonical form.
	manifest bool
}

func (d *documentDecoder) decodeDocument(root tree.Node) {
	top := d.decodeMapping(d.unwrapManifest(root), "a document", "resourceTypes", "unions", "actions", "actionBindings")
	d.document.ResourceTypes = decodeList(d, top[0], "resourceTypes", d.decodeResourceType)
	d.document.Unions = decodeList(d, top[1], "unions", d.decodeUnion)
	d.document.Actions = decodeList(d, top[2], "actions", func(n tree.Node) Action {
		return Action{Name: d.decodeName(d.decodeMapping(n, "an action", "name")[0], "name"), At: positionOf(n)}
	})
	d.document.Bindings = decodeList(d, top[3], "actionBindings", d.decodeBinding)
}

func (d *documentDecoder) decodeResourceType(n tree.Node) ResourceType {
	fields := d.decodeMapping(n, "a resource type", "name", "idPrefix", "relationships")
	return ResourceType{
		Name: d.decodeName(fields[0], "name"), IDPrefix: d.decodeName(fields[1], "idPrefix"),
		Relationships: decodeList(d, fields[2], "relationships", d.decodeRelationship), At: positionOf(n),
	}
}

func (d *documentDecoder) decodeRelationship(n tree.Node) Relationship {
	fields := d.decodeMapping(n, "a relationship", "relation", "targetTypes")
	return Relationship{
		Relation: d.decodeName(fields[0], "relation"), Targets: decodeList(d, fields[1], "targetTypes", d.decodeReference), At: positionOf(n),
	}
}

func (d *documentDecoder) decodeUnion(n tree.Node) Union {
	fields := d.decodeMapping(n, "a union", "name", "resourceTypes", "resourceTypeNames")
	members, also := fields[1], fields[2]
	d.reportFileOnlySyntax(also.Line == 0, also, "it has the key resourceTypeNames", "write resourceTypes")
	if also.Kind == tree.Scalar {
		also = tree.Node{Kind: tree.Sequence, Children: []tree.Node{also}, Line: also.Line, Column: also.Column}
	}
	if members.Line > 0 && also.Line > 0 {
		d.reportError(laterPositionedNode(members, also), policy.CodeDupKey,
			"resourceTypes and resourceTypeNames are the same key, given twice", "keep resourceTypes, with the members of both")
	}
	return Union{
		Name: d.decodeName(fields[0], "name"), At: positionOf(n),
		Members: append(decodeList(d, members, "resourceTypes", d.decodeReference), decodeList(d, also, "resourceTypeNames", d.decodeReference)...),
	}
}

// decodeReference reads a reference to a type: `name: x`, or only x.
func (d *documentDecoder) decodeReference(n tree.Node) Name {
	if n.Kind == tree.Mapping {
		name := d.decodeName(d.decodeMapping(n, "a reference to a type", "name")[0], "name")
		if name.At == (policy.Position{}) {
			name.At = positionOf(n)
		}
		return name
	}
	d.reportFileOnlySyntax(n.Kind != tree.Scalar, n, "it has a type that is just its name", "write `name: "+n.Text+"`")
	return d.decodeName(n, "the name of a type")
}

func (d *documentDecoder) decodeBinding(n tree.Node) Binding {
	fields := d.decodeMapping(n, "an action binding", "actionName", "typeName", "conditions")
	return Binding{
		Action: d.decodeName(fields[0], "actionName"), Type: d.decodeName(fields[1], "typeName"),
		Conditions: decodeList(d, fields[2], "conditions", d.decodeCondition), At: positionOf(n),
	}
}

func (d *documentDecoder) decodeCondition(n tree.Node) Condition {
	fields := d.decodeMapping(n, "a condition", "roleBinding", "relationshipAction")
	c := Condition{At: positionOf(n)}
	if role := fields[0]; role.Line > 0 {
		// The key counts, because an empty mapping is its only valid value.
		c.RoleBinding = true
		d.decodeMapping(role, "roleBinding")
	}
	if step := fields[1]; step.Line > 0 {
		fields := d.decodeMapping(step, "a relationshipAction", "relation", "actionName")
		c.RelationshipAction = &RelationshipAction{
			Relation: d.decodeName(fields[0], "relation"), Action: d.decodeName(fields[1], "actionName"), At: positionOf(step),
		}
	}
	return c
}

// decodeName reads a name. The caller decides whether a missing name is an error.
func (d *documentDecoder) decodeName(n tree.Node, what string) Name {
	if n.Kind == tree.Sequence || n.Kind == tree.Mapping {
		d.reportUnreadable(n, what+" is "+n.Kind.String()+", not a text", "write one name")
	}
	d.reportInvalidText(n, maxText)
	return Name{Text: n.Text, At: positionOf(n)}
}

// decodeList reads a list. A list that is absent or has no value is empty.
func decodeList[T any](d *documentDecoder, list tree.Node, what string, decode func(tree.Node) T) []T {
	if list.Kind == tree.Null {
		return nil
	}
	if list.Kind != tree.Sequence {
		d.reportUnreadable(list, what+" is "+list.Kind.String()+", not a list", "begin each item of the list with a dash")
		return nil
	}
	d.reportLongList(list, what)
	items := make([]T, 0, len(list.Children))
	for _, item := range list.Children {
		items = append(items, decode(item))
	}
	return items
}

// reportError reports an error in a part that could be read.
func (d *documentDecoder) reportError(n tree.Node, code policy.Code, message, hint string) *policy.Diagnostic {
	d.document.faulty = true
	return d.findings.Add(d.document.Source.PlaceAt(positionOf(n)), code, message, hint)
}

// reportUnreadable reports a value of the wrong kind, whose content is lost.
func (d *documentDecoder) reportUnreadable(n tree.Node, message, hint string) {
	d.document.incomplete = true
	d.reportError(n, policy.CodeKind, message, hint)
}

func positionOf(n tree.Node) policy.Position { return policy.TextPosition(n.Line, n.Column) }

func laterPositionedNode(a, b tree.Node) tree.Node {
	if a.Line > b.Line || a.Line == b.Line && a.Column > b.Column {
		return a
	}
	return b
}
