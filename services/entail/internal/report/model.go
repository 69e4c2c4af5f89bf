package report

import (
	"maps"
	"slices"
	"strings"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	policyreport "github.com/entail-dev/entail/services/policy/report"
)

// WriteModel shows a live model.
func (p Printer) WriteModel(m *storev1.GetModelResponse) {
	p.writeText(m.GetDsl())
}

// WriteModelProvenance lists the source of each part of a model.
func (p Printer) WriteModelProvenance(m *storev1.GetModelResponse) {
	rows := make([]tableRow, len(m.GetDefinitions()))
	for i, d := range m.GetDefinitions() {
		source := d.GetSource()
		if source == "" {
			source = "unknown: the live model differs from the declared one"
		}
		rows[i] = tableRow{cells: []string{definitionName(d), d.GetModule(), source}}
	}
	p.writeTable([]string{"DEFINITION", "MODULE", "SOURCE"}, rows)
}

// WriteModelPreview prints the effects of a module on the model.
func (p Printer) WriteModelPreview(m *storev1.PreviewModelResponse) {
	if !m.GetAccepted() {
		p.writeLinef("Rejected: %s", m.GetMessage())
		if found := ToDiagnostics(m.GetFindings()); len(found) > 0 {
			p.writeText(policyreport.RenderText(found))
		}
		if len(m.GetChanges()) == 0 {
			return
		}
		p.writeLinef("Removals act nevertheless:")
	} else if m.GetMessage() != "" {
		p.writeLinef("Accepted: %s", m.GetMessage())
	}
	for _, module := range m.GetModules() {
		if module.GetState() == "Rejected" {
			p.writeLinef("%s would be rejected: %s", module.GetSource(), module.GetMessage())
		}
	}
	p.writeLosses(m)
	p.WriteModelChanges(m.GetChanges())
}

// writeLosses lists the definitions that each object would lose, and the tuples that would leave OpenFGA.
func (p Printer) writeLosses(m *storev1.PreviewModelResponse) {
	lost := map[string][]string{}
	for _, c := range m.GetChanges() {
		if source := c.GetDefinition().GetSource(); source != "" && c.GetKind() == storev1.ModelChange_KIND_REMOVED {
			lost[source] = append(lost[source], definitionName(c.GetDefinition()))
		}
	}
	for _, source := range slices.Sorted(maps.Keys(lost)) {
		p.writeLinef("%s would lose %s", source, strings.Join(lost[source], ", "))
	}
	if m.GetLostTupleCount() == 0 {
		return
	}
	p.writeLinef("Tuples that would leave OpenFGA: %d", m.GetLostTupleCount())
	for _, t := range m.GetLostTuples() {
		p.writeLinef("  %s#%s@%s of %s", t.GetObject(), t.GetRelation(), t.GetUser(), t.GetOwner())
	}
	if more := int(m.GetLostTupleCount()) - len(m.GetLostTuples()); more > 0 {
		p.writeLinef("  and %d more", more)
	}
}

// WriteModelChanges lists the differences between two models.
func (p Printer) WriteModelChanges(changes []*storev1.ModelChange) {
	if len(changes) == 0 {
		p.writeLinef("The models mean the same.")
		return
	}
	rows := make([]tableRow, len(changes))
	for i, c := range changes {
		what := strings.ToLower(strings.TrimPrefix(c.GetKind().String(), "KIND_"))
		rows[i] = tableRow{cells: []string{
			definitionName(c.GetDefinition()), what, strings.Join(c.GetGained(), ", "), strings.Join(c.GetLost(), ", "), c.GetAfter(),
		}}
	}
	p.writeTable([]string{"DEFINITION", "CHANGE", "NOW ALSO", "NO LONGER", "AFTER"}, rows)
}

// writeText writes lines unchanged, except for control characters.
func (p Printer) writeText(text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		p.writeLinef("%s", line)
	}
}

func definitionName(d *storev1.Definition) string {
	switch {
	case d.GetCondition() != "":
		return "condition " + d.GetCondition()
	case d.GetRelation() != "":
		return d.GetType() + "#" + d.GetRelation()
	default:
		return d.GetType()
	}
}
