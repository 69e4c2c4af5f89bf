package openfga

import (
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/output"
)

// CompileDSL compiles a policy to a model for people. The model is nil if the findings have errors.
func CompileDSL(p *policy.Policy, o Options) ([]byte, policy.Diagnostics) {
	m := newPolicyModel(p, o)
	return m.writeUnlessErrors(m.checkModel(o, false), func(w modelWriter) {
		w.out.WriteText("model\n  schema ", m.options.SchemaVersion, "\n")
		for i, t := range p.Types {
			w.writeType("type", t, m.definitions[i])
		}
	})
}

// writeUnlessErrors returns the output, unless the findings have errors.
func (m *policyModel) writeUnlessErrors(found policy.Diagnostics, write func(modelWriter)) ([]byte, policy.Diagnostics) {
	if found.HasErrors() {
		return nil, found
	}
	text, _ := output.WriteWithinLimit(-1, func(w *output.MeasuringWriter) { write(modelWriter{out: w, options: m.policy.Options}) })
	return text, found
}

type modelWriter struct {
	out     *output.MeasuringWriter
	options policy.Options
}

// writeType writes a type, or the extension of a type by a module.
func (w modelWriter) writeType(keyword string, t *policy.Type, all []relationDefinition) {
	w.out.WriteText("\n", keyword, " ", t.Name, "\n")
	for i, d := range all {
		if i == 0 {
			w.out.WriteText("  relations\n")
		}
		w.out.WriteText("    define ", d.name, ": ")
		switch {
		case d.relation != nil:
			w.writeTypeRestrictions(d.relation)
		case d.role:
			w.out.WriteText("[", w.options.RoleType, "#", w.options.RoleRelation, "]")
		default:
			w.writeRewrite(d.bound)
		}
		w.out.WriteText("\n")
	}
}

func (w modelWriter) writeTypeRestrictions(r *policy.Relation) {
	separator := "["
	for _, target := range r.Targets {
		w.out.WriteText(separator, target.Name)
		separator = ", "
	}
	w.out.WriteText("]")
}

func (w modelWriter) writeRewrite(b *policy.Binding) {
	separator := ""
	if b.RoleBinding {
		w.out.WriteText(b.Action, w.options.RoleSuffix)
		separator = " or "
	}
	for _, s := range b.Steps {
		w.out.WriteText(separator, s.Action, " from ", s.Relation)
		separator = " or "
	}
}
