package openfga

import "github.com/entail-dev/entail/services/policy"

// CompileJSON compiles a policy to a model in the form of OpenFGA's API. The model is nil if the findings have errors.
//
// It needs no JSON encoder: names need no quoting, and a model may be large.
func CompileJSON(p *policy.Policy, o Options) ([]byte, policy.Diagnostics) {
	m := newPolicyModel(p, o)
	return m.writeUnlessErrors(m.checkModel(o, false), func(w modelWriter) {
		w.out.WriteText(`{"schema_version":"`, m.options.SchemaVersion, `","type_definitions":[`)
		for i, t := range p.Types {
			w.writeComma(i)
			w.writeTypeJSON(t, m.definitions[i])
		}
		w.out.WriteText("]}\n")
	})
}

func (w modelWriter) writeComma(i int) {
	if i > 0 {
		w.out.WriteText(",")
	}
}

func (w modelWriter) writeTypeJSON(t *policy.Type, all []relationDefinition) {
	w.out.WriteText(`{"type":"`, t.Name, `"`)
	if len(all) == 0 {
		w.out.WriteText("}")
		return
	}
	w.out.WriteText(`,"relations":{`)
	for i, d := range all {
		w.writeComma(i)
		w.out.WriteText(`"`, d.name, `":`)
		if d.relation != nil || d.role {
			w.out.WriteText(`{"this":{}}`)
		} else {
			w.writeRewriteJSON(d.bound)
		}
	}
	w.out.WriteText(`},"metadata":{"relations":{`)
	for i, d := range all {
		w.writeComma(i)
		w.out.WriteText(`"`, d.name, `":{`)
		w.writeDirectlyRelatedTypes(d)
		w.out.WriteText("}")
	}
	w.out.WriteText("}}}")
}

func (w modelWriter) writeDirectlyRelatedTypes(d relationDefinition) {
	switch {
	case d.relation != nil:
		w.out.WriteText(`"directly_related_user_types":[`)
		for i, target := range d.relation.Targets {
			w.writeComma(i)
			w.out.WriteText(`{"type":"`, target.Name, `"}`)
		}
		w.out.WriteText("]")
	case d.role:
		w.out.WriteText(`"directly_related_user_types":[{"type":"`, w.options.RoleType, `","relation":"`, w.options.RoleRelation, `"}]`)
	}
}

// writeRewriteJSON writes a union only for two or more conditions, because OpenFGA rejects smaller unions.
func (w modelWriter) writeRewriteJSON(b *policy.Binding) {
	several := len(b.Steps) > 1 || b.RoleBinding && len(b.Steps) > 0
	if several {
		w.out.WriteText(`{"union":{"child":[`)
	}
	if b.RoleBinding {
		w.out.WriteText(`{"computedUserset":{"relation":"`, b.Action, w.options.RoleSuffix, `"}}`)
	}
	for i, s := range b.Steps {
		if i > 0 || b.RoleBinding {
			w.out.WriteText(",")
		}
		w.out.WriteText(`{"tupleToUserset":{"tupleset":{"relation":"`, s.Relation, `"},"computedUserset":{"relation":"`, s.Action, `"}}}`)
	}
	if several {
		w.out.WriteText("]}}")
	}
}
