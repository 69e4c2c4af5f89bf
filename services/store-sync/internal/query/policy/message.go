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

// FindingsToProto returns at most maxListed findings. If there are more, and errors among them, it leaves out the warnings.
func FindingsToProto(found policy.Diagnostics) *policyv1.Findings {
	m := &policyv1.Findings{Truncated: len(found) > maxListed, Total: int32(found.Total())}
	if m.GetTruncated() && found.HasErrors() {
		found = slices.DeleteFunc(slices.Clone(found), func(d policy.Diagnostic) bool { return d.Severity == policy.Warning })
	}
	for _, d := range found[:min(maxListed, len(found))] {
		m.Diagnostics = append(m.Diagnostics, diagnosticToProto(d))
	}
	return m
}

func diagnosticToProto(d policy.Diagnostic) *policyv1.Diagnostic {
	m := &policyv1.Diagnostic{
		Place: placeToProto(d.Place), Code: string(d.Code), Severity: policyv1.Severity_SEVERITY_ERROR, Message: sanitizeText(d.Message),
		Hint: sanitizeText(d.Hint),
	}
	if d.Severity == policy.Warning {
		m.Severity = policyv1.Severity_SEVERITY_WARNING
	}
	for _, r := range d.Related {
		m.Related = append(m.Related, &policyv1.Diagnostic_Related{Place: placeToProto(r.Place), Message: sanitizeText(r.Message)})
	}
	return m
}

// placeToProto returns nil for an element without a place in a text.
func placeToProto(p policy.Place) *policyv1.Place {
	if p == (policy.Place{}) {
		return nil
	}
	return &policyv1.Place{File: p.File, Document: int32(p.Document), Line: int32(p.Line), Column: int32(p.Column), Path: p.Path}
}

// sanitizeText makes a text valid UTF-8 and cuts it to maxMessage bytes. The text may quote anything.
func sanitizeText(s string) string {
	return truncate.Text(strings.ToValidUTF8(s, "\uFFFD"), maxMessage)
}
