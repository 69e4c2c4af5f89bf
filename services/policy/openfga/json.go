package openfga

import "github.com/entail-dev/entail/services/policy"

// JSON compiles a policy to a model in the form of OpenFGA's API. The model is nil if the findings have errors.
//
// It needs no JSON encoder: names need no quoting, and a model may be large.
func JSON(p *policy.Policy, o Options) ([]byte, policy.Diagnostics) {
	m := newModel(p, o)
	return m.write(m.check(o, false), func(w writer) {
		w.out.Text(`{"schema_version":"`, m.options.SchemaVersion, `","type_definitions":[`)
		for i, t := range p.Types {
			w.comma(i)
			w.typeJSON(t, m.definitions[i])
		}
		w.out.Text("]}\n")
	})
}

func (w writer) comma(i int) {
	if i > 0 {
		w.out.Text(",")
	}
}

func (w writer) typeJSON(t *policy.Type, all []definition) {
	w.out.Text(`{"type":"`, t.Name, `"`)
	if len(all) == 0 {
		w.out.Text("}")
		return
	}
	w.out.Text(`,"relations":{`)
	for i, d := range all {
		w.comma(i)
		w.out.Text(`"`, d.name, `":`)
		if d.relation != nil || d.role {
			w.out.Text(`{"this":{}}`)
		} else {
			w.conditionsJSON(d.bound)
		}
	}
	w.out.Text(`},"metadata":{"relations":{`)
	for i, d := range all {
		w.comma(i)
		w.out.Text(`"`, d.name, `":{`)
		w.targetsJSON(d)
		w.out.Text("}")
	}
	w.out.Text("}}}")
}

func (w writer) targetsJSON(d definition) {
	switch {
	case d.relation != nil:
		w.out.Text(`"directly_related_user_types":[`)
		for i, target := range d.relation.Targets {
			w.comma(i)
			w.out.Text(`{"type":"`, target.Name, `"}`)
		}
		w.out.Text("]")
	case d.role:
		w.out.Text(`"directly_related_user_types":[{"type":"`, w.options.RoleType, `","relation":"`, w.options.RoleRelation, `"}]`)
	}
}

// conditionsJSON writes a union only for two or more conditions, because OpenFGA rejects smaller unions.
func (w writer) conditionsJSON(b *policy.Binding) {
	several := len(b.Steps) > 1 || b.RoleBinding && len(b.Steps) > 0
	if several {
		w.out.Text(`{"union":{"child":[`)
	}
	if b.RoleBinding {
		w.out.Text(`{"computedUserset":{"relation":"`, b.Action, w.options.RoleSuffix, `"}}`)
	}
	for i, s := range b.Steps {
		if i > 0 || b.RoleBinding {
			w.out.Text(",")
		}
		w.out.Text(`{"tupleToUserset":{"tupleset":{"relation":"`, s.Relation, `"},"computedUserset":{"relation":"`, s.Action, `"}}}`)
	}
	if several {
		w.out.Text("]}}")
	}
}
