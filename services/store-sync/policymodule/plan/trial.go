package plan

import (
	"fmt"
	"slices"
	"strconv"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// trial is a valid policy that documents form.
type trial struct {
	policy *policy.Policy
	// texts are what each document says in it, nil for nothing.
	texts []*iaplv1alpha1.Policy
	// lost are the findings that took something out of a document's last valid text.
	lost map[int]policy.Diagnostics
}

// try checks the policy with some of the changes. What others lose by a removal is no finding; what they would lose by an addition is.
func (s *selection) try(changes map[int]bool) (trial, policy.Diagnostics) {
	t, found := s.hold(s.startingTexts(changes), changes)
	if len(found) > 0 || len(t.lost) == 0 || len(changes) == 0 {
		return t, found
	}
	narrowed, _ := s.hold(s.narrowedTexts(changes), nil)
	for i, findings := range t.lost {
		if !includes(t.texts[i], narrowed.texts[i]) {
			found = found.Join(findings)
		}
	}
	return t, found
}

// hold takes out of texts what makes the policy invalid, until it is valid. It cuts none that are fixed: what is wrong with these it
// returns.
func (s *selection) hold(texts []*iaplv1alpha1.Policy, fixed map[int]bool) (trial, policy.Diagnostics) {
	t := trial{texts: texts, lost: map[int]policy.Diagnostics{}}
	for {
		p, found := s.check(t.texts, fixed)
		t.policy = p
		cut, by := false, byDocument(found)
		if len(by) == 1 && len(fixed) == 0 && by[nobody] != nil { // All of it together is too much for what was enough before.
			by[lastOf(t.texts)] = by[nobody]
		}
		for i, findings := range by {
			if i != nobody && !fixed[i] {
				t.texts[i], t.lost[i], cut = without(t.texts[i], findings), append(t.lost[i], findings...), true
			}
		}
		if !cut {
			return t, found
		}
	}
}

// lastOf returns the index of the text with the least claim, or nobody.
func lastOf(texts []*iaplv1alpha1.Policy) int {
	for i := range slices.Backward(texts) {
		if texts[i] != nil {
			return i
		}
	}
	return nobody
}

// check finds what is wrong with the policy that texts form, some of which are changes.
func (s *selection) check(texts []*iaplv1alpha1.Policy, changes map[int]bool) (*policy.Policy, policy.Diagnostics) {
	if found := s.vast(texts, changes); found != nil {
		return nil, found
	}
	var documents []*syntax.Document
	for i, text := range texts {
		if text != nil {
			documents = append(documents, Read(rank(i), s.documents[i].Name, text))
		}
	}
	p, found := check.Documents(documents, s.options)
	if p != nil {
		found = found.Join(openfga.Check(p, unlimited())).Join(s.clashes(p))
	}
	// A policy of nothing is one that nobody has begun to register.
	found = slices.DeleteFunc(found, func(d policy.Diagnostic) bool { return d.Severity != policy.Error || d.Code == policy.CodeEmpty })
	if len(found) == 0 && p != nil {
		found = s.overfull(p, changes)
	}
	switch {
	case len(found) > 0:
		return nil, found
	case p == nil:
		p = &policy.Policy{Options: s.options.OrDefault()}
	}
	return p, nil
}

// clashes finds the types of a policy that are live in a module of the Store that is no PolicyDocument.
func (s *selection) clashes(p *policy.Policy) policy.Diagnostics {
	var found policy.Collector
	for _, t := range p.Types {
		if !t.Synthesised() && s.defined[t.Name] {
			found.Add(t.Source.At(t.At), policy.CodeCollision, fmt.Sprintf("type %q is defined by a module of the Store that is no PolicyDocument", t.Name),
				"rename it, or take it out of the Store's core module or its AuthorizationModels")
		}
	}
	return found.Diagnostics()
}

// unlimited leaves it to the merge of the whole model to judge its size.
func unlimited() openfga.Options { return openfga.Options{MaxTypes: -1, MaxBytes: -1} }

// rank is the name of a document for check: of two that claim a name, the later one is told so.
func rank(i int) string { return fmt.Sprintf("%06d", i) }

// nobody stands for the document of a finding about all of them.
const nobody = -1

// byDocument are the findings on each document.
func byDocument(found policy.Diagnostics) map[int]policy.Diagnostics {
	by := map[int]policy.Diagnostics{}
	for _, d := range found {
		by[index(d.Place)] = append(by[index(d.Place)], d)
	}
	return by
}

// index is the document of a place, or nobody.
func index(p policy.Place) int {
	i, err := strconv.Atoi(p.File)
	if err != nil {
		return nobody
	}
	return i
}

// named calls a place what people do.
func (s *selection) named(p policy.Place) policy.Place {
	if i := index(p); i != nobody {
		p.File = "PolicyDocument " + s.documents[i].Name
	}
	return p
}
