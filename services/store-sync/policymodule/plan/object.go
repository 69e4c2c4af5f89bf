package plan

import (
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// JoinDocuments joins documents into the text of one PolicyDocument. It is the reverse of [ToSyntaxDocument].
func JoinDocuments(documents ...*syntax.Document) *iaplv1alpha1.Policy {
	p := new(iaplv1alpha1.Policy)
	for _, d := range documents {
		for _, t := range d.ResourceTypes {
			p.ResourceTypes = append(p.ResourceTypes, toResourceType(t))
		}
		for _, u := range d.Unions {
			p.Unions = append(p.Unions, iaplv1alpha1.Union{Name: u.Name.Text, ResourceTypes: toNamedList(u.Members)})
		}
		for _, a := range d.Actions {
			p.Actions = append(p.Actions, iaplv1alpha1.Action{Name: a.Name.Text})
		}
		for _, b := range d.Bindings {
			p.ActionBindings = append(p.ActionBindings, toActionBinding(b))
		}
	}
	return p
}

func toResourceType(t syntax.ResourceType) iaplv1alpha1.ResourceType {
	o := iaplv1alpha1.ResourceType{Name: t.Name.Text, IDPrefix: t.IDPrefix.Text}
	for _, r := range t.Relationships {
		o.Relationships = append(o.Relationships, iaplv1alpha1.Relationship{Relation: r.Relation.Text, TargetTypes: toNamedList(r.Targets)})
	}
	return o
}

func toActionBinding(b syntax.Binding) iaplv1alpha1.ActionBinding {
	o := iaplv1alpha1.ActionBinding{ActionName: b.Action.Text, TypeName: b.Type.Text}
	for _, c := range b.Conditions {
		var condition iaplv1alpha1.Condition
		if c.RoleBinding {
			condition.RoleBinding = &iaplv1alpha1.RoleBinding{}
		}
		if step := c.RelationshipAction; step != nil {
			condition.RelationshipAction = &iaplv1alpha1.RelationshipAction{Relation: step.Relation.Text, ActionName: step.Action.Text}
		}
		o.Conditions = append(o.Conditions, condition)
	}
	return o
}

func toNamedList(all []syntax.Name) []iaplv1alpha1.Named {
	var list []iaplv1alpha1.Named
	for _, n := range all {
		list = append(list, iaplv1alpha1.Named{Name: n.Text})
	}
	return list
}
