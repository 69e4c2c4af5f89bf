package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy"
)

// selection finds the largest part of the present documents that forms one valid policy.
type selection struct {
	options policy.Options
	// defined holds the live types of all modules that no policy made.
	defined map[string]bool
	// room is the space for all documents together. It is nil if that is unknown.
	room *Room
	// documents are sorted by their claims.
	documents []Document
	// pending holds the indexes of documents whose present text may still go live.
	pending map[int]bool
	// barred documents get no new text, whatever the others hold.
	barred map[int]bool
	// refused holds the findings on documents, by index.
	refused map[int]policy.Diagnostics
	// result is the chosen policy.
	result trial
}

// newSelection returns a selection in which every change is pending, except those that are too large. documents must be
// sorted by their claims.
func (in Input) newSelection(documents []Document, options policy.Options) *selection {
	s := &selection{
		options: options, documents: documents, defined: in.Defined, room: in.Room,
		pending: map[int]bool{}, barred: map[int]bool{}, refused: map[int]policy.Diagnostics{},
	}
	for i, d := range documents {
		if found := sizeFindings(d); found != nil {
			s.barred[i], s.refused[i] = true, found
		} else if d.changed {
			s.pending[i] = true
		}
	}
	return s
}

// refuseAll refuses every change.
func (s *selection) refuseAll(findings policy.Diagnostics) {
	s.pending = map[int]bool{}
	for i := range s.documents {
		s.barred[i] = true
		s.refuseDocument(i, findings)
	}
}

// isSettled reports whether another round would give the same result.
func (s *selection) isSettled() bool {
	moved, left := false, false
	for i, d := range s.documents {
		moved = moved || !equality.Semantic.DeepEqual(s.result.texts[i], d.Live)
		left = left || s.isLeft(i, d)
	}
	return !moved || !left
}

// isLeft reports whether the present text of a document is not live, and could be.
func (s *selection) isLeft(i int, d Document) bool {
	return (d.changed || s.result.lost[i] != nil) && !s.pending[i] && !s.barred[i]
}

// acceptedDocuments returns the documents with the chosen texts as live texts.
func (s *selection) acceptedDocuments() []Document {
	documents := slices.Clone(s.documents)
	for i := range documents {
		documents[i].setLive(s.result.texts[i])
	}
	slices.SortFunc(documents, Document.compareClaims)
	return documents
}

// maxTrials bounds the extra checks of a policy, after the first ones that find the refused changes.
const maxTrials = 200

// chooseTexts drops changes that do not fit until the rest is valid.
func (s *selection) chooseTexts() {
	t, found := s.tryChanges(s.pending)
	for len(found) > 0 && len(s.pending) > 0 {
		for i := range s.blameChanges(found) {
			delete(s.pending, i)
		}
		t, found = s.tryChanges(s.pending)
	}
	s.result = t
	s.readmitTexts()
}

// readmitTexts accepts a refused or cut text that fits now. It had missed an element that was refused together with it.
func (s *selection) readmitTexts() {
	for trials, again := 0, true; again; {
		again = false
		for i, d := range s.documents {
			if !s.isLeft(i, d) || trials == maxTrials {
				continue
			}
			trials++
			s.pending[i] = true
			better, found := s.tryChanges(s.pending)
			if len(found) > 0 {
				delete(s.pending, i)
				continue
			}
			s.result, again = better, true
			delete(s.refused, i)
		}
	}
}

// startingTexts returns the text of each document in a policy with some changes. A changed document has its present
// text. Any other has its last valid text, as far as the present one mentions it.
func (s *selection) startingTexts(changes map[int]bool) []*iaplv1alpha1.Policy {
	texts := make([]*iaplv1alpha1.Policy, len(s.documents))
	for i, d := range s.documents {
		switch {
		case changes[i]:
			texts[i] = d.Present
		case d.changed:
			texts[i] = restrictTo(d.Live, d.Present)
		default:
			texts[i] = d.Live
		}
	}
	return texts
}

// narrowedTexts returns the same texts, but applies only the removals among the changes.
func (s *selection) narrowedTexts(changes map[int]bool) []*iaplv1alpha1.Policy {
	texts := s.startingTexts(nil)
	unions := unionMembers(texts)
	for i := range changes {
		present, live := s.documents[i].Present, s.documents[i].Live
		texts[i] = commonElements(expandTargets(present, live, unions), expandTargets(live, present, unions))
	}
	return texts
}
