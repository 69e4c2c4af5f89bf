package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// blameChanges returns the documents whose changes must be dropped, and records the reason for each. These are changes with
// findings of their own, else changes that break unchanged documents.
func (s *selection) blameChanges(found policy.Diagnostics) map[int]bool {
	broken := byDocument(found)
	for _, contested := range []bool{false, true} {
		if drop := s.faultyChanges(broken, contested); len(drop) > 0 {
			return drop
		}
	}
	drop := s.breakingChanges()
	if len(drop) == 0 {
		drop = maps.Clone(s.pending)
	}
	for i := range drop {
		s.refuseDocument(i, s.breakingFinding(found))
	}
	return drop
}

// faultyChanges returns the changes with findings of their own that are contested, or those that are not.
func (s *selection) faultyChanges(broken map[int]policy.Diagnostics, contested bool) map[int]bool {
	drop := map[int]bool{}
	for at, findings := range broken {
		if at == nobody {
			at = s.weakestDocument()
		}
		if s.pending[at] && s.isContested(findings) == contested {
			drop[at] = true
			s.refuseDocument(at, findings)
		}
	}
	return drop
}

// isContested reports whether all findings on a document are about other pending changes. Those may still be dropped.
func (s *selection) isContested(findings policy.Diagnostics) bool {
	return !slices.ContainsFunc(findings, func(d policy.Diagnostic) bool {
		return !slices.ContainsFunc(d.Related, func(r policy.Related) bool { return s.pending[documentIndex(r.Place)] })
	})
}

// refuseDocument records why the present text of a document is not valid. The first record counts.
func (s *selection) refuseDocument(i int, findings policy.Diagnostics) {
	if s.refused[i] == nil {
		s.refused[i] = findings
	}
}

// codeBreaks is the code of the finding on a valid document whose additions make others invalid.
const codeBreaks policy.Code = "E-BREAKS-OTHERS"

// breakingFinding returns the finding on a change that lists the other documents it would break.
func (s *selection) breakingFinding(others policy.Diagnostics) policy.Diagnostics {
	const shown = 3
	d := policy.Diagnostic{
		Place: policy.Place{Path: "spec"}, Code: codeBreaks, Severity: policy.Error, Message: "other documents would be invalid with this addition",
		Hint: "remove it, or change the other documents first or at the same time",
	}
	for _, other := range others[:min(len(others), shown)] {
		other.Place = s.withDocumentName(other.Place)
		d.Message += "; " + other.String()
	}
	if more := len(others) - shown; more > 0 {
		d.Message += fmt.Sprintf("; and %d more", more)
	}
	return policy.Diagnostics{d}
}

// weakestDocument returns the document with the weakest claim among the pending changes, else the last document.
func (s *selection) weakestDocument() int {
	for i := range slices.Backward(s.documents) {
		if s.pending[i] {
			return i
		}
	}
	return len(s.documents) - 1
}

// breakingChanges returns the changes that break another document even alone. It makes at most maxTrials trials.
func (s *selection) breakingChanges() map[int]bool {
	culprits, trials := map[int]bool{}, 0
	for i := range s.documents {
		if !s.pending[i] || trials == maxTrials {
			continue
		}
		trials++
		_, found := s.tryChanges(map[int]bool{i: true})
		for at := range byDocument(found) {
			if at != i {
				culprits[i] = true
			}
		}
	}
	return culprits
}
