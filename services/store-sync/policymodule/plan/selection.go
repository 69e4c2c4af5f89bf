package plan

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy"
)

// documentSelection finds the largest part of the present documents that forms one valid policy.
type documentSelection struct {
	options policy.Options
	// defined holds the live types of all modules that no policy made.
	defined map[string]bool
	// room is the space for all documents together. It is nil if that is unknown.
	room *ModelBudget
	// documents are sorted by their claims.
	documents []Document
	// pending holds the indexes of documents whose present text may still go live.
	pending map[int]bool
	// barred documents get no new text, whatever the others hold.
	barred map[int]bool
	// refused holds the findings on documents, by index.
	refused map[int]policy.Diagnostics
	// result is the chosen policy.
	result trialPolicy
}

// newDocumentSelection returns a selection in which every change is pending, except those that are too large. documents must be
// sorted by their claims.
func (in Input) newDocumentSelection(documents []Document, options policy.Options) *documentSelection {
	s := &documentSelection{
		options: options, documents: documents, defined: in.Defined, room: in.Room,
		pending: map[int]bool{}, barred: map[int]bool{}, refused: map[int]policy.Diagnostics{},
	}
	for i, d := range documents {
		if found := oversizedDocumentFindings(d); found != nil {
			s.barred[i], s.refused[i] = true, found
		} else if d.changed {
			s.pending[i] = true
		}
	}
	return s
}

// refuseAllChanges refuses every change.
func (s *documentSelection) refuseAllChanges(findings policy.Diagnostics) {
	s.pending = map[int]bool{}
	for i := range s.documents {
		s.barred[i] = true
		s.refuseDocument(i, findings)
	}
}

// hasReachedFixpoint reports whether another round would give the same result.
func (s *documentSelection) hasReachedFixpoint() bool {
	moved, left := false, false
	for i, d := range s.documents {
		moved = moved || !equality.Semantic.DeepEqual(s.result.texts[i], d.Live)
		left = left || s.canStillBecomeLive(i, d)
	}
	return !moved || !left
}

// canStillBecomeLive reports whether the present text of a document is not live, and could be.
func (s *documentSelection) canStillBecomeLive(i int, d Document) bool {
	return (d.changed || s.result.lost[i] != nil) && !s.pending[i] && !s.barred[i]
}

// acceptedDocuments returns the documents with the chosen texts as live texts.
func (s *documentSelection) acceptedDocuments() []Document {
	documents := slices.Clone(s.documents)
	for i := range documents {
		documents[i].setLiveText(s.result.texts[i])
	}
	slices.SortFunc(documents, Document.compareClaims)
	return documents
}

// maxTrials bounds the extra checks of a policy, after the first ones that find the refused changes.
const maxTrials = 200

// dropInvalidChanges drops changes that do not fit until the rest is valid.
func (s *documentSelection) dropInvalidChanges() {
	t, found := s.tryChanges(s.pending)
	for len(found) > 0 && len(s.pending) > 0 {
		for i := range s.refuseChangesWithFindings(found) {
			delete(s.pending, i)
		}
		t, found = s.tryChanges(s.pending)
	}
	s.result = t
	s.readmitRefusedTexts()
}

// readmitRefusedTexts accepts each refused or cut text that fits now. Such a text was refused because of another change
// that was refused in the same step. Younger documents that took its names in the meantime are refused.
func (s *documentSelection) readmitRefusedTexts() {
	for trials, again := 0, true; again; {
		again = false
		for i, d := range s.documents {
			if !s.canStillBecomeLive(i, d) || trials == maxTrials {
				continue
			}
			trials++
			s.pending[i] = true
			better, found := s.tryChanges(s.pending)
			younger := s.youngerRivals(i, found)
			if len(younger) > 0 {
				maps.DeleteFunc(s.pending, func(j int, _ bool) bool { return younger[j] != nil })
				better, found = s.tryChanges(s.pending)
			}
			if len(found) > 0 {
				delete(s.pending, i)
				for j := range younger {
					s.pending[j] = true
				}
				continue
			}
			s.result, again = better, true
			for j, findings := range younger {
				s.refuseDocument(j, findings)
			}
			delete(s.refused, i)
		}
	}
}

// youngerRivals returns the findings on accepted changes of younger documents that declare a name of document i. These
// changes were accepted only because i was refused for another reason. It returns nil if there are other findings.
func (s *documentSelection) youngerRivals(i int, found policy.Diagnostics) map[int]policy.Diagnostics {
	rivals := findingsByDocument(found)
	for j, findings := range rivals {
		if !s.pending[j] || !s.documents[i].isOlderThan(s.documents[j]) || slices.ContainsFunc(findings, func(d policy.Diagnostic) bool {
			return len(d.Related) != 1 || documentIndex(d.Related[0].Place) != i
		}) {
			return nil
		}
	}
	return rivals
}

// textsWithChanges returns the text of each document in a policy with some changes. A changed document has its present
// text. Any other has its last valid text, as far as the present one mentions it.
func (s *documentSelection) textsWithChanges(changes map[int]bool) []*iaplv1alpha1.Policy {
	texts := make([]*iaplv1alpha1.Policy, len(s.documents))
	for i, d := range s.documents {
		texts[i] = d.Live
	}
	unions := unionMembers(texts)
	for i, d := range s.documents {
		switch {
		case changes[i]:
			texts[i] = d.Present
		case d.changed:
			texts[i] = restrictToMentioned(d.Live, d.Present, unions)
		default:
			texts[i] = d.Live
		}
	}
	return texts
}

// textsWithRemovals returns the same texts, but applies only the removals among the changes.
func (s *documentSelection) textsWithRemovals(changes map[int]bool) []*iaplv1alpha1.Policy {
	texts := s.textsWithChanges(nil)
	unions := unionMembers(texts)
	for i := range changes {
		present, live := s.documents[i].Present, s.documents[i].Live
		texts[i] = commonElements(expandUnionTargets(present, live, unions), expandUnionTargets(live, present, unions))
	}
	return texts
}
