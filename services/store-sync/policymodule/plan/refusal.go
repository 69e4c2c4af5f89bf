package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// refuseChangesWithFindings returns the documents whose changes must be dropped, and records the reason for each. These are changes with
// findings of their own, else changes that break unchanged documents.
func (s *documentSelection) refuseChangesWithFindings(found policy.Diagnostics) map[int]bool {
	broken := findingsByDocument(found)
	for _, contested := range []bool{false, true} {
		if drop := s.refuseFaultyChanges(broken, contested); len(drop) > 0 {
			return drop
		}
	}
	drop := s.findBreakingChanges()
	if len(drop) == 0 {
		drop = maps.Clone(s.pending)
	}
	for i := range drop {
		s.refuseDocument(i, s.brokenDocumentsFinding(found))
	}
	return drop
}

// refuseFaultyChanges returns the changes with findings of their own that are contested, or those that are not.
func (s *documentSelection) refuseFaultyChanges(broken map[int]policy.Diagnostics, contested bool) map[int]bool {
	drop := map[int]bool{}
	for at, findings := range broken {
		if at == nobody {
			at = s.weakestPendingDocument()
		}
		if s.pending[at] && s.concernsOnlyPendingChanges(findings) == contested {
			drop[at] = true
			s.refuseDocument(at, findings)
		}
	}
	return drop
}

// concernsOnlyPendingChanges reports whether all findings on a document are about other pending changes. Those may still be dropped.
func (s *documentSelection) concernsOnlyPendingChanges(findings policy.Diagnostics) bool {
	return !slices.ContainsFunc(findings, func(d policy.Diagnostic) bool {
		return !slices.ContainsFunc(d.Related, func(r policy.RelatedPlace) bool { return s.pending[documentIndex(r.Place)] })
	})
}

// refuseDocument records why the present text of a document is not valid. The first record counts.
func (s *documentSelection) refuseDocument(i int, findings policy.Diagnostics) {
	if s.refused[i] == nil {
		s.refused[i] = findings
	}
}

// codeBreaks is the code of the finding on a valid document whose additions make others invalid.
const codeBreaks policy.Code = "E-BREAKS-OTHERS"

// brokenDocumentsFinding returns the finding on a change that lists the other documents it would break.
func (s *documentSelection) brokenDocumentsFinding(others policy.Diagnostics) policy.Diagnostics {
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

// weakestPendingDocument returns the document with the weakest claim among the pending changes, else the last document.
func (s *documentSelection) weakestPendingDocument() int {
	for i := range slices.Backward(s.documents) {
		if s.pending[i] {
			return i
		}
	}
	return len(s.documents) - 1
}

// findBreakingChanges returns the changes that break another document even alone. It makes at most maxTrials trials.
func (s *documentSelection) findBreakingChanges() map[int]bool {
	culprits, trials := map[int]bool{}, 0
	for i := range s.documents {
		if !s.pending[i] || trials == maxTrials {
			continue
		}
		trials++
		_, found := s.tryChanges(map[int]bool{i: true})
		for at := range findingsByDocument(found) {
			if at != i {
				culprits[i] = true
			}
		}
	}
	return culprits
}
