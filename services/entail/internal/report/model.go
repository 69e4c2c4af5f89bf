package report

import (
	"strings"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
)

// Model shows a live model.
func (p Page) Model(m *storev1.GetModelResponse) error {
	return p.text(m.GetDsl())
}

// Provenance tells where each part of a model comes from.
func (p Page) Provenance(m *storev1.GetModelResponse) error {
	rows := make([]row, len(m.GetDefinitions()))
	for i, d := range m.GetDefinitions() {
		source := d.GetSource()
		if source == "" {
			source = "unknown: the live model is not what the objects ask for"
		}
		rows[i] = row{cells: []string{definitionName(d), d.GetModule(), source}}
	}
	return p.table([]string{"DEFINITION", "MODULE", "SOURCE"}, rows)
}

// ModelPreview tells what a module would do.
func (p Page) ModelPreview(m *storev1.PreviewModelResponse) error {
	if !m.GetAccepted() {
		return p.line("Rejected: %s", m.GetMessage())
	}
	if m.GetMessage() != "" {
		if err := p.line("Accepted: %s", m.GetMessage()); err != nil {
			return err
		}
	}
	for _, module := range m.GetModules() {
		if module.GetState() == "Rejected" {
			if err := p.line("%s would be rejected: %s", module.GetSource(), module.GetMessage()); err != nil {
				return err
			}
		}
	}
	return p.ModelChanges(m.GetChanges())
}

// ModelChanges tells how one model differs from another.
func (p Page) ModelChanges(changes []*storev1.ModelChange) error {
	if len(changes) == 0 {
		return p.line("The models mean the same.")
	}
	rows := make([]row, len(changes))
	for i, c := range changes {
		what := strings.ToLower(strings.TrimPrefix(c.GetKind().String(), "KIND_"))
		rows[i] = row{cells: []string{
			definitionName(c.GetDefinition()), what, strings.Join(c.GetGained(), ", "), strings.Join(c.GetLost(), ", "), c.GetAfter(),
		}}
	}
	return p.table([]string{"DEFINITION", "CHANGE", "NOW ALSO", "NO LONGER", "AFTER"}, rows)
}

// text writes lines as they are, but for control characters.
func (p Page) text(text string) error {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if err := p.line("%s", line); err != nil {
			return err
		}
	}
	return nil
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
