package spicedb

import (
	"cmp"
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/output"
)

// CompileSchema compiles a policy to a schema. The schema is nil if the findings have errors.
func CompileSchema(p *policy.Policy, o Options) ([]byte, policy.Diagnostics) {
	found := CheckSchema(p, o)
	if found.HasErrors() {
		return nil, found
	}
	limit := cmp.Or(o.MaxBytes, defaultMaxBytes)
	schema, size := output.WriteWithinLimit(limit, func(w *output.MeasuringWriter) {
		s := schemaWriter{out: w, prefix: o.typePrefix(), options: p.Options}
		for i, t := range p.Types {
			if i > 0 {
				s.out.WriteText("\n")
			}
			s.writeDefinition(t)
		}
	})
	if schema == nil {
		return nil, schemaTooLarge(size, limit)
	}
	return schema, found
}

func schemaTooLarge(size, limit int) policy.Diagnostics {
	var findings policy.DiagnosticCollector
	findings.Add(policy.Place{}, policy.CodeSpiceDBSize, fmt.Sprintf("the schema has %d bytes, of at most %d", size, limit),
		"make unions, the relations to them or the bindings of them smaller, or raise the limit of SpiceDB and the one here (--spicedb-max-bytes)")
	return findings.Diagnostics()
}

type schemaWriter struct {
	out     *output.MeasuringWriter
	prefix  string
	options policy.Options
}

func (w schemaWriter) writeDefinition(t *policy.Type) {
	w.out.WriteText("definition ", w.prefix, t.Name, " {\n")
	start := w.out.Size()
	for _, r := range t.Relations {
		w.writeRelation(r)
	}
	gap := w.blankLineIfNeeded(start)
	for _, b := range t.Bindings {
		if b.RoleBinding {
			w.out.WriteText(gap, "  relation ", b.Action, w.options.RoleSuffix, ": ", w.prefix, w.options.RoleType, "#", w.options.RoleRelation, "\n")
			gap = ""
		}
	}
	gap = w.blankLineIfNeeded(start)
	for _, b := range t.Bindings {
		w.out.WriteText(gap)
		w.writePermission(b)
		gap = ""
	}
	w.out.WriteText("}\n")
}

// blankLineIfNeeded returns the text between groups of lines: an empty line if lines precede.
func (w schemaWriter) blankLineIfNeeded(start int) string {
	if w.out.Size() > start {
		return "\n"
	}
	return ""
}

func (w schemaWriter) writeRelation(r *policy.Relation) {
	w.out.WriteText("  relation ", r.Name, ": ")
	for i, target := range r.Targets {
		if i > 0 {
			w.out.WriteText(" | ")
		}
		w.out.WriteText(w.prefix, target.Name)
	}
	w.out.WriteText("\n")
}

func (w schemaWriter) writePermission(b *policy.Binding) {
	w.out.WriteText("  permission ", b.Action, " = ")
	separator := ""
	if b.RoleBinding {
		w.out.WriteText(b.Action, w.options.RoleSuffix)
		separator = " + "
	}
	for _, s := range b.Steps {
		w.out.WriteText(separator, s.Relation, "->", s.Action)
		separator = " + "
	}
	w.out.WriteText("\n")
}
