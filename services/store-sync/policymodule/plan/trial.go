package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// trialPolicy holds a valid policy made from documents.
type trialPolicy struct {
	policy *policy.Policy
	// texts holds the part of each document in the policy, nil if it has none.
	texts []*iaplv1alpha1.Policy
	// lost holds the findings for which elements were cut from a document's text.
	lost map[int]policy.Diagnostics
}

// tryChanges checks the policy with some of the changes. It returns a finding if an addition makes another document lose
// elements. Losses from a removal are no findings.
func (s *documentSelection) tryChanges(changes map[int]bool) (trialPolicy, policy.Diagnostics) {
	t, found := s.cutInvalidElements(s.textsWithChanges(changes), changes)
	if len(found) > 0 || len(t.lost) == 0 || len(changes) == 0 {
		return t, found
	}
	narrowed, _ := s.cutInvalidElements(s.textsWithRemovals(changes), nil)
	for i, findings := range t.lost {
		if !includesAllElements(t.texts[i], narrowed.texts[i]) {
			found = found.Merge(findings)
		}
	}
	return t, found
}

// cutInvalidElements cuts invalid elements from texts until the policy is valid. It does not cut the fixed texts, and returns the
// findings on those.
func (s *documentSelection) cutInvalidElements(texts []*iaplv1alpha1.Policy, fixed map[int]bool) (trialPolicy, policy.Diagnostics) {
	t := trialPolicy{texts: texts, lost: map[int]policy.Diagnostics{}}
	for {
		p, found := s.checkTexts(t.texts, fixed)
		t.policy = p
		cut, by := false, findingsByDocument(found)
		if len(by) == 1 && len(fixed) == 0 && by[nobody] != nil { // Only the whole is too much for a limit: the last text gives way.
			by[lastTextIndex(t.texts)] = by[nobody]
		}
		for i, findings := range by {
			if i != nobody && !fixed[i] {
				t.texts[i], t.lost[i], cut = withoutFaultyElements(t.texts[i], findings), append(t.lost[i], findings...), true
			}
		}
		if !cut {
			return t, found
		}
	}
}

// lastTextIndex returns the index of the text with the weakest claim, or nobody.
func lastTextIndex(texts []*iaplv1alpha1.Policy) int {
	for i := range slices.Backward(texts) {
		if texts[i] != nil {
			return i
		}
	}
	return nobody
}

// checkTexts returns the policy that texts form, or its errors. changes are the indexes of the changed texts.
func (s *documentSelection) checkTexts(texts []*iaplv1alpha1.Policy, changes map[int]bool) (*policy.Policy, policy.Diagnostics) {
	if found := s.tooManyBindingsFindings(texts, changes); found != nil {
		return nil, found
	}
	var documents []*syntax.Document
	for i, text := range texts {
		if text != nil {
			documents = append(documents, ToSyntaxDocument(indexFileName(i), s.documents[i].Name, text))
		}
	}
	p, found := check.Documents(documents, s.options)
	if p != nil {
		found = found.Merge(openfga.CheckModel(p, unlimitedOptions())).Merge(s.typeConflictFindings(p))
	}
	s.assignFindingToYoungerDocument(found, texts, changes)
	// An empty policy is valid: no service has registered anything yet.
	found = slices.DeleteFunc(found, func(d policy.Diagnostic) bool { return d.Severity != policy.Error || d.Code == policy.CodeEmpty })
	if len(found) == 0 && p != nil {
		found = s.overBudgetFindings(p, changes)
	}
	switch {
	case len(found) > 0:
		return nil, found
	case p == nil:
		p = &policy.Policy{Options: s.options.OrDefault()}
	}
	return p, nil
}

// assignFindingToYoungerDocument moves a finding that two changes declare one name to the younger document, unless the name is live there. The check
// reports it on the later document, and documents with a live text come first.
func (s *documentSelection) assignFindingToYoungerDocument(found policy.Diagnostics, texts []*iaplv1alpha1.Policy, changes map[int]bool) {
	for k, d := range found {
		if len(d.Related) != 1 || !strings.HasPrefix(string(d.Code), "E-DUP-") {
			continue
		}
		first, later := documentIndex(d.Related[0].Place), documentIndex(d.Place)
		if !changes[first] || !changes[later] || !s.documents[later].isOlderThan(s.documents[first]) {
			continue
		}
		if !s.documents[first].liveTextMentions(elementNameAt(texts[first], d.Related[0].Place.Path)) {
			found[k].Place, found[k].Related[0].Place = d.Related[0].Place, d.Place
		}
	}
}

// typeConflictFindings returns findings on the types of a policy that another live module of the Store defines.
func (s *documentSelection) typeConflictFindings(p *policy.Policy) policy.Diagnostics {
	var found policy.DiagnosticCollector
	for _, t := range p.Types {
		if !t.IsSynthesised() && s.defined[t.Name] {
			found.Add(t.Source.PlaceAt(t.At), policy.CodeCollision,
				fmt.Sprintf("type %q is defined by a module of the Store that is not a PolicyDocument", t.Name),
				"rename it, or take it out of the Store's core module or its AuthorizationModels")
		}
	}
	return found.Diagnostics()
}

// unlimitedOptions returns options without limits, because the merge of the whole model checks its size.
func unlimitedOptions() openfga.Options { return openfga.Options{MaxTypes: -1, MaxBytes: -1} }

// indexFileName returns the name of a document for the check. If two documents claim a name, the finding is on the later one.
func indexFileName(i int) string { return fmt.Sprintf("%06d", i) }

// nobody is the index for findings about all documents.
const nobody = -1

// findingsByDocument groups findings by document.
func findingsByDocument(found policy.Diagnostics) map[int]policy.Diagnostics {
	by := map[int]policy.Diagnostics{}
	for _, d := range found {
		by[documentIndex(d.Place)] = append(by[documentIndex(d.Place)], d)
	}
	return by
}

// documentIndex returns the index of the document of a place, or nobody.
func documentIndex(p policy.Place) int {
	i, err := strconv.Atoi(p.File)
	if err != nil {
		return nobody
	}
	return i
}

// withDocumentName returns a place with the name of the PolicyDocument in place of its index.
func (s *documentSelection) withDocumentName(p policy.Place) policy.Place {
	if i := documentIndex(p); i != nobody {
		p.File = "PolicyDocument " + s.documents[i].Name
	}
	return p
}
