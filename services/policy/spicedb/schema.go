package spicedb

import (
	"cmp"
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/output"
)

// Schema compiles a policy to a schema. The schema is nil if the findings have errors.
func Schema(p *policy.Policy, o Options) ([]byte, policy.Diagnostics) {
	found := Check(p, o)
	if found.HasErrors() {
		return nil, found
	}
	limit := cmp.Or(o.MaxBytes, defaultMaxBytes)
	schema, size := output.Of(limit, func(w *output.Writer) {
		s := writer{out: w, prefix: o.prefix(), options: p.Options}
		for i, t := range p.Types {
			if i > 0 {
				s.out.Text("\n")
			}
			s.definition(t)
		}
	})
	if schema == nil {
		return nil, tooLarge(size, limit)
	}
	return schema, found
}

func tooLarge(size, limit int) policy.Diagnostics {
	var findings policy.Collector
	findings.Add(policy.Place{}, policy.CodeSpiceDBSize, fmt.Sprintf("the schema has %d bytes, of at most %d", size, limit),
		"make unions, the relations to them or the bindings of them smaller, or raise the limit of SpiceDB and the one here (--spicedb-max-bytes)")
	return findings.Diagnostics()
}

type writer struct {
	out     *output.Writer
	prefix  string
	options policy.Options
}

func (w writer) definition(t *policy.Type) {
	w.out.Text("definition ", w.prefix, t.Name, " {\n")
	start := w.out.Size()
	for _, r := range t.Relations {
		w.relation(r)
	}
	gap := w.gap(start)
	for _, b := range t.Bindings {
		if b.RoleBinding {
			w.out.Text(gap, "  relation ", b.Action, w.options.RoleSuffix, ": ", w.prefix, w.options.RoleType, "#", w.options.RoleRelation, "\n")
			gap = ""
		}
	}
	gap = w.gap(start)
	for _, b := range t.Bindings {
		w.out.Text(gap)
		w.permission(b)
		gap = ""
	}
	w.out.Text("}\n")
}

// gap returns the text between groups of lines: an empty line if lines precede.
func (w writer) gap(start int) string {
	if w.out.Size() > start {
		return "\n"
	}
	return ""
}

func (w writer) relation(r *policy.Relation) {
	w.out.Text("  relation ", r.Name, ": ")
	for i, target := range r.Targets {
		if i > 0 {
			w.out.Text(" | ")
		}
		w.out.Text(w.prefix, target.Name)
	}
	w.out.Text("\n")
}

func (w writer) permission(b *policy.Binding) {
	w.out.Text("  permission ", b.Action, " = ")
	separator := ""
	if b.RoleBinding {
		w.out.Text(b.Action, w.options.RoleSuffix)
		separator = " + "
	}
	for _, s := range b.Steps {
		w.out.Text(separator, s.Relation, "->", s.Action)
		separator = " + "
	}
	w.out.Text("\n")
}
