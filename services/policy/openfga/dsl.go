package openfga

import (
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/output"
)

// DSL compiles a policy to a model for people to read. There is a model unless the findings have errors.
func DSL(p *policy.Policy, o Options) ([]byte, policy.Diagnostics) {
	m := newModel(p, o)
	return m.write(m.check(o, false), func(w writer) {
		w.Text("model\n  schema ", m.options.SchemaVersion, "\n")
		for i, t := range p.Types {
			w.typ("type", t, m.definitions[i])
		}
	})
}

// write returns what was written, if nothing was found that forbids it.
func (m *model) write(found policy.Diagnostics, write func(writer)) ([]byte, policy.Diagnostics) {
	if found.HasErrors() {
		return nil, found
	}
	out, _ := output.Of(-1, func(w *output.Writer) { write(writer{Writer: w, options: m.Options}) })
	return out, found
}

type writer struct {
	*output.Writer
	options policy.Options
}

// typ writes a type, or what a module adds to one.
func (w writer) typ(keyword string, t *policy.Type, all []definition) {
	w.Text("\n", keyword, " ", t.Name, "\n")
	for i, d := range all {
		if i == 0 {
			w.Text("  relations\n")
		}
		w.Text("    define ", d.name, ": ")
		switch {
		case d.relation != nil:
			w.targets(d.relation)
		case d.role:
			w.Text("[", w.options.RoleType, "#", w.options.RoleRelation, "]")
		default:
			w.conditions(d.bound)
		}
		w.Text("\n")
	}
}

func (w writer) targets(r *policy.Relation) {
	separator := "["
	for _, target := range r.Targets {
		w.Text(separator, target.Name)
		separator = ", "
	}
	w.Text("]")
}

func (w writer) conditions(b *policy.Bound) {
	separator := ""
	if b.RoleBinding {
		w.Text(b.Action, w.options.RoleSuffix)
		separator = " or "
	}
	for _, s := range b.Steps {
		w.Text(separator, s.Action, " from ", s.Relation)
		separator = " or "
	}
}
