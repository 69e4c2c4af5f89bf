package load

import (
	"fmt"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/tree"
)

// decoder makes a document of nodes.
type decoder struct {
	document *policy.Document
	findings *policy.Findings
}

func (d *decoder) decode(root tree.Node) {
	top := d.fields(d.unwrap(root), "a document", "resourceTypes", "unions", "actions", "actionBindings")
	d.document.ResourceTypes = decodeEach(d, top[0], "resourceTypes", d.resourceType)
	d.document.Unions = decodeEach(d, top[1], "unions", d.union)
	d.document.Actions = decodeEach(d, top[2], "actions", func(n tree.Node) policy.Action {
		return policy.Action{Name: d.name(d.fields(n, "an action", "name")[0], "name"), At: at(n)}
	})
	d.document.Bindings = decodeEach(d, top[3], "actionBindings", d.binding)
}

func (d *decoder) resourceType(n tree.Node) policy.ResourceType {
	fields := d.fields(n, "a resource type", "name", "idPrefix", "relationships")
	return policy.ResourceType{
		Name: d.name(fields[0], "name"), IDPrefix: d.name(fields[1], "idPrefix"),
		Relationships: decodeEach(d, fields[2], "relationships", d.relationship), At: at(n),
	}
}

func (d *decoder) relationship(n tree.Node) policy.Relationship {
	fields := d.fields(n, "a relationship", "relation", "targetTypes")
	return policy.Relationship{
		Relation: d.name(fields[0], "relation"), Targets: decodeEach(d, fields[1], "targetTypes", d.reference), At: at(n),
	}
}

func (d *decoder) union(n tree.Node) policy.Union {
	fields := d.fields(n, "a union", "name", "resourceTypes", "resourceTypeNames")
	members, also := fields[1], fields[2]
	if also.Kind == tree.Scalar {
		also = tree.Node{Kind: tree.Sequence, Children: []tree.Node{also}, Line: also.Line, Column: also.Column}
	}
	if members.Line > 0 && also.Line > 0 {
		d.report(policy.Faulty, later(members, also), policy.CodeDupKey,
			"resourceTypes and resourceTypeNames are the same key, given twice", "keep resourceTypes, with the members of both")
	}
	return policy.Union{
		Name: d.name(fields[0], "name"), At: at(n),
		Members: append(decodeEach(d, members, "resourceTypes", d.reference), decodeEach(d, also, "resourceTypeNames", d.reference)...),
	}
}

// reference reads the name of a type: `name: x`, or just x.
func (d *decoder) reference(n tree.Node) policy.Name {
	if n.Kind == tree.Mapping {
		name := d.name(d.fields(n, "a reference to a type", "name")[0], "name")
		if name.At == (policy.Position{}) {
			name.At = at(n)
		}
		return name
	}
	return d.name(n, "the name of a type")
}

func (d *decoder) binding(n tree.Node) policy.Binding {
	fields := d.fields(n, "an action binding", "actionName", "typeName", "conditions")
	return policy.Binding{
		Action: d.name(fields[0], "actionName"), Type: d.name(fields[1], "typeName"),
		Conditions: decodeEach(d, fields[2], "conditions", d.condition), At: at(n),
	}
}

func (d *decoder) condition(n tree.Node) policy.Condition {
	fields := d.fields(n, "a condition", "roleBinding", "relationshipAction")
	c := policy.Condition{At: at(n)}
	if role := fields[0]; role.Line > 0 {
		// It is the key that counts: an empty mapping is its only value.
		c.RoleBinding = true
		d.fields(role, "roleBinding")
	}
	if step := fields[1]; step.Line > 0 {
		fields := d.fields(step, "a relationshipAction", "relation", "actionName")
		c.RelationshipAction = &policy.RelationshipAction{
			Relation: d.name(fields[0], "relation"), Action: d.name(fields[1], "actionName"), At: at(step),
		}
	}
	return c
}

// name reads a name. Whether one has to be there is not decided here.
func (d *decoder) name(n tree.Node, what string) policy.Name {
	if n.Kind == tree.Sequence || n.Kind == tree.Mapping {
		d.report(policy.Incomplete, n, policy.CodeKind, what+" is "+n.Kind.String()+", not a text", "write one name")
	}
	return policy.Name{Text: n.Text, At: at(n)}
}

// decodeEach reads a list. An absent one is empty, and so is one without a value.
func decodeEach[T any](d *decoder, list tree.Node, what string, decode func(tree.Node) T) []T {
	if list.Kind == tree.Null {
		return nil
	}
	if list.Kind != tree.Sequence {
		d.report(policy.Incomplete, list, policy.CodeKind, what+" is "+list.Kind.String()+", not a list", "begin each item of the list with a dash")
		return nil
	}
	items := make([]T, 0, len(list.Children))
	for _, item := range list.Children {
		items = append(items, decode(item))
	}
	return items
}

func (d *decoder) report(damage policy.Damage, n tree.Node, code policy.Code, message, hint string) *policy.Diagnostic {
	d.document.Damage = max(d.document.Damage, damage)
	return d.findings.Add(d.document.Source.At(at(n)), code, message, hint)
}

func at(n tree.Node) policy.Position { return policy.Position{Line: n.Line, Column: n.Column} }

func later(a, b tree.Node) tree.Node {
	if a.Line > b.Line || a.Line == b.Line && a.Column > b.Column {
		return a
	}
	return b
}

// quote returns a name as findings show it, whatever somebody wrote there.
func quote(s string) string { return fmt.Sprintf("%.64q", s) }

// enumerate is "a, b and c".
func enumerate(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
