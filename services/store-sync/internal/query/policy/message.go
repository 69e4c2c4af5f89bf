package policy

import (
	"slices"
	"strings"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/internal/clip"
	"github.com/entail-dev/entail/services/policy"
)

// maxListed bounds every list of an answer, maxMessage what one of its items says.
const maxListed, maxMessage = 1000, 2048

// Findings are as many as an answer has room for: errors, and warnings where there is room for them too.
func Findings(found policy.Diagnostics) *policyv1.Findings {
	m := &policyv1.Findings{Truncated: len(found) > maxListed, Total: int32(found.Total())}
	if m.GetTruncated() && found.HasErrors() {
		found = slices.DeleteFunc(slices.Clone(found), func(d policy.Diagnostic) bool { return d.Severity == policy.Warning })
	}
	for _, d := range found[:min(maxListed, len(found))] {
		m.Diagnostics = append(m.Diagnostics, diagnostic(d))
	}
	return m
}

func diagnostic(d policy.Diagnostic) *policyv1.Diagnostic {
	m := &policyv1.Diagnostic{
		Place: place(d.Place), Code: string(d.Code), Severity: policyv1.Severity_SEVERITY_ERROR, Message: text(d.Message), Hint: text(d.Hint),
	}
	if d.Severity == policy.Warning {
		m.Severity = policyv1.Severity_SEVERITY_WARNING
	}
	for _, r := range d.Related {
		m.Related = append(m.Related, &policyv1.Diagnostic_Related{Place: place(r.Place), Message: text(r.Message)})
	}
	return m
}

// place is nil for what nobody wrote.
func place(p policy.Place) *policyv1.Place {
	if p == (policy.Place{}) {
		return nil
	}
	return &policyv1.Place{File: p.File, Document: int32(p.Document), Line: int32(p.Line), Column: int32(p.Column), Path: p.Path}
}

// text is what an answer can carry of a text, which may quote anything.
func text(s string) string { return clip.Text(strings.ToValidUTF8(s, "\uFFFD"), maxMessage) }
