package plan

import (
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// selection finds the most of what documents hold now that is one valid policy.
type selection struct {
	options policy.Options
	// defined are the types of modules that no policy made.
	defined map[string]bool
	// room is what there is for all documents together, nil if nobody knows.
	room *Room
	// documents are in the order of their claims.
	documents []Document
	// pending are the indexes of documents whose change is to become live.
	pending map[int]bool
	// demoted are the indexes of those of which what is live is no longer valid.
	demoted map[int]bool
	// barred documents stay as they are, whatever the others hold.
	barred map[int]bool
	// refused are the findings on documents, by index.
	refused map[int]policy.Diagnostics
}

// newSelection begins with every change pending that can be. Documents are in the order of their claims.
func newSelection(documents []Document, options policy.Options, defined map[string]bool, room *Room) *selection {
	s := &selection{
		options: options, documents: documents, defined: defined, room: room,
		pending: map[int]bool{}, barred: map[int]bool{}, demoted: map[int]bool{}, refused: map[int]policy.Diagnostics{},
	}
	for i, d := range documents {
		if found := size(d); found != nil {
			s.barred[i], s.refused[i] = true, found
		} else if d.changed {
			s.pending[i] = true
		}
	}
	return s
}

// progress reports whether changes were accepted, and whether some were not.
func (s *selection) progress() (accepted, left bool) {
	for i, d := range s.documents {
		accepted = accepted || s.pending[i]
		left = left || d.changed && !s.pending[i] && !s.barred[i]
	}
	return accepted, left
}

// accepted are the documents with what was accepted live.
func (s *selection) accepted() []Document {
	var documents []Document
	for i, d := range s.documents {
		if s.pending[i] {
			d.Live, d.changed = d.Present, false
		}
		if d.Present != nil || d.Live != nil {
			documents = append(documents, d)
		}
	}
	slices.SortFunc(documents, Document.compare)
	return documents
}

// maxTrials bounds how often a policy is checked to find out more than that a change is refused.
const maxTrials = 200

// choose drops changes that do not fit until what is left is valid.
func (s *selection) choose() *policy.Policy {
	p, found := s.try(s.pending)
	if p == nil {
		s.demote()
	}
	for p == nil {
		for i := range s.blame(found) {
			delete(s.pending, i)
		}
		p, found = s.try(s.pending)
	}
	return s.readmit(p)
}

// demote takes out of the policy what is live in it and has become invalid by itself: somebody
// else defines its types now. The merge of the whole model decides what becomes of its module.
func (s *selection) demote() {
	for p, found := s.try(nil); p == nil; p, found = s.try(nil) {
		for at, findings := range byDocument(found) {
			if at == nobody { // All of it together is too much for what was enough before.
				at = s.anyLive()
			}
			s.demoted[at] = true
			if !s.documents[at].changed {
				s.refuse(at, findings)
			}
		}
	}
}

// anyLive is the document with the greatest claim that has not been demoted.
func (s *selection) anyLive() int {
	for i, d := range s.documents {
		if d.Live != nil && !s.demoted[i] {
			return i
		}
	}
	return 0 // There is one, or there would be nothing to find.
}

// readmit takes in what turns out to fit after all: it was refused, or demoted, for want of
// something that was refused with it.
func (s *selection) readmit(p *policy.Policy) *policy.Policy {
	for trials, again := 0, true; again; {
		again = false
		for i, d := range s.documents {
			change, back := d.changed && !s.pending[i] && !s.barred[i], !d.changed && s.demoted[i]
			if !change && !back || trials == maxTrials {
				continue
			}
			trials++
			s.pending[i], s.demoted[i] = change, s.demoted[i] && !back
			if better, _ := s.try(s.pending); better != nil {
				p, again = better, true
				delete(s.refused, i)
			} else {
				s.pending[i], s.demoted[i] = false, s.demoted[i] || back
			}
		}
	}
	return p
}
