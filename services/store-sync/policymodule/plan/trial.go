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

// try checks the policy with some of the changes.
func (s *selection) try(changes map[int]bool) (*policy.Policy, policy.Diagnostics) {
	if found := s.vast(changes); found != nil {
		return nil, found
	}
	var documents []*syntax.Document
	for i, d := range s.documents {
		if text := s.text(i, changes); text != nil {
			documents = append(documents, Read(rank(i), d.Name, text))
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

// text is what a document says in the policy with some of the changes, nil if nothing.
func (s *selection) text(i int, changes map[int]bool) *iaplv1alpha1.Policy {
	switch d := s.documents[i]; {
	case changes[i]:
		return d.Present
	case s.demoted[i]:
		return nil
	default:
		return d.Live
	}
}

// clashes are the types of a policy that the store has without it.
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
