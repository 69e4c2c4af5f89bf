package openfga

import (
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/output"
)

// DSL compiles a policy to a model for people. The model is nil if the findings have errors.
func DSL(p *policy.Policy, o Options) ([]byte, policy.Diagnostics) {
	m := newModel(p, o)
	return m.write(m.check(o, false), func(w writer) {
		w.out.Text("model\n  schema ", m.options.SchemaVersion, "\n")
		for i, t := range p.Types {
			w.typ("type", t, m.definitions[i])
		}
	})
}

// write returns the output, unless the findings have errors.
func (m *model) write(found policy.Diagnostics, write func(writer)) ([]byte, policy.Diagnostics) {
	if found.HasErrors() {
		return nil, found
	}
	text, _ := output.Of(-1, func(w *output.Writer) { write(writer{out: w, options: m.policy.Options}) })
	return text, found
}

type writer struct {
	out     *output.Writer
	options policy.Options
}

// typ writes a type, or the extension of a type by a module.
func (w writer) typ(keyword string, t *policy.Type, all []definition) {
	w.out.Text("\n", keyword, " ", t.Name, "\n")
	for i, d := range all {
		if i == 0 {
			w.out.Text("  relations\n")
		}
		w.out.Text("    define ", d.name, ": ")
		switch {
		case d.relation != nil:
			w.targets(d.relation)
		case d.role:
			w.out.Text("[", w.options.RoleType, "#", w.options.RoleRelation, "]")
		default:
			w.conditions(d.bound)
		}
		w.out.Text("\n")
	}
}

func (w writer) targets(r *policy.Relation) {
	separator := "["
	for _, target := range r.Targets {
		w.out.Text(separator, target.Name)
		separator = ", "
	}
	w.out.Text("]")
}

func (w writer) conditions(b *policy.Binding) {
	separator := ""
	if b.RoleBinding {
		w.out.Text(b.Action, w.options.RoleSuffix)
		separator = " or "
	}
	for _, s := range b.Steps {
		w.out.Text(separator, s.Action, " from ", s.Relation)
		separator = " or "
	}
}
