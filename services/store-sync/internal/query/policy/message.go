package policy

import (
	"slices"
	"strings"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/internal/truncate"
	"github.com/entail-dev/entail/services/policy"
)

// maxListed bounds every list of an answer, maxMessage the bytes of each text in it.
const maxListed, maxMessage = 1000, 2048

// Findings returns at most maxListed findings. If there are more, and errors among them, it leaves out the warnings.
func Findings(found policy.Diagnostics) *policyv1.Findings {
	m := &policyv1.Findings{Truncated: len(found) > maxListed, Total: int32(found.Total())}
	if m.GetTruncated() && found.HasErrors() {
		found = slices.DeleteFunc(slices.Clone(found), func(d policy.Diagnostic) bool { return d.Severity == policy.Warning })
	}
	for _, d := range found[:min(maxListed, len(found))] {
		m.Diagnostics = append(m.Diagnostics, diagnosticMessage(d))
	}
	return m
}

func diagnosticMessage(d policy.Diagnostic) *policyv1.Diagnostic {
	m := &policyv1.Diagnostic{
		Place: placeMessage(d.Place), Code: string(d.Code), Severity: policyv1.Severity_SEVERITY_ERROR, Message: validText(d.Message), Hint: validText(d.Hint),
	}
	if d.Severity == policy.Warning {
		m.Severity = policyv1.Severity_SEVERITY_WARNING
	}
	for _, r := range d.Related {
		m.Related = append(m.Related, &policyv1.Diagnostic_Related{Place: placeMessage(r.Place), Message: validText(r.Message)})
	}
	return m
}

// placeMessage returns nil for an element without a place in a text.
func placeMessage(p policy.Place) *policyv1.Place {
	if p == (policy.Place{}) {
		return nil
	}
	return &policyv1.Place{File: p.File, Document: int32(p.Document), Line: int32(p.Line), Column: int32(p.Column), Path: p.Path}
}

// validText makes a text valid UTF-8 and cuts it to maxMessage bytes. The text may quote anything.
func validText(s string) string { return truncate.Text(strings.ToValidUTF8(s, "\uFFFD"), maxMessage) }
