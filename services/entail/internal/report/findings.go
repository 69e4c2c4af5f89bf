package report

import (
	"fmt"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/policy"
)

// ToDiagnostics returns the findings of the service. If the service does not list all, the last one holds the total.
func ToDiagnostics(m *policyv1.Findings) policy.Diagnostics {
	var found policy.Diagnostics
	for _, d := range m.GetDiagnostics() {
		found = append(found, toDiagnostic(d))
	}
	if m.GetTruncated() {
		code := policy.CodeMoreWarnings
		if found.HasErrors() {
			code = policy.CodeLimit
		}
		found = append(found, policy.Diagnostic{
			Code: code, Severity: code.Severity(), Message: fmt.Sprintf("there are %d findings, of which %d are listed", m.GetTotal(), len(found)),
			Hint: "correct those that are listed, then check again",
		})
	}
	return found
}

func toDiagnostic(m *policyv1.Diagnostic) policy.Diagnostic {
	d := policy.Diagnostic{
		Place: ToPlace(m.GetPlace()), Code: policy.Code(m.GetCode()), Message: m.GetMessage(), Hint: m.GetHint(),
		Severity: policy.Code(m.GetCode()).Severity(),
	}
	for _, r := range m.GetRelated() {
		d.AddRelated(ToPlace(r.GetPlace()), r.GetMessage())
	}
	return d
}

// ToPlace converts a place of the service.
func ToPlace(m *policyv1.Place) policy.Place {
	return policy.Place{File: m.GetFile(), Document: int(m.GetDocument()), Line: int(m.GetLine()), Column: int(m.GetColumn()), Path: m.GetPath()}
}
