package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/entail-dev/entail/services/internal/policy"
)

// choice looks for the most of what documents say now that is one valid policy.
type choice struct {
	options policy.Options
	// defined are the types of modules that no policy made.
	defined map[string]bool
	// documents are in the order of their claims.
	documents []Document
	// pending are the indexes of documents whose change is to become live.
	pending map[int]bool
	// demoted are the indexes of those of which what is live is no longer valid.
	demoted map[int]bool
	// barred documents stay as they are, whatever the others say.
	barred map[int]bool
	// refused are the findings on documents, by index.
	refused map[int]policy.Diagnostics
}

// newChoice begins with every change pending that can be. Documents are in the order of their claims.
func newChoice(documents []Document, options policy.Options, defined map[string]bool) *choice {
	c := &choice{
		options: options, documents: documents, defined: defined,
		pending: map[int]bool{}, barred: map[int]bool{}, demoted: map[int]bool{}, refused: map[int]policy.Diagnostics{},
	}
	for i, d := range documents {
		if found := size(d); found != nil {
			c.barred[i], c.refused[i] = true, found
		} else if d.changed {
			c.pending[i] = true
		}
	}
	return c
}

// outcome reports whether changes were accepted, and whether some were not.
func (c *choice) outcome() (accepted, left bool) {
	for i, d := range c.documents {
		accepted = accepted || c.pending[i]
		left = left || d.changed && !c.pending[i] && !c.barred[i]
	}
	return accepted, left
}

// settled are the documents with what was accepted live.
func (c *choice) settled() []Document {
	var documents []Document
	for i, d := range c.documents {
		if c.pending[i] {
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
func (c *choice) choose() *policy.Policy {
	p, found := c.try(c.pending)
	if p == nil {
		c.demote()
	}
	for p == nil {
		for i := range c.blame(found) {
			delete(c.pending, i)
		}
		p, found = c.try(c.pending)
	}
	return c.readmit(p)
}

// demote takes out of the policy what is live in it and has become invalid by itself: somebody
// else defines its types now. The merge of the whole model decides what becomes of its module.
func (c *choice) demote() {
	for p, found := c.try(nil); p == nil; p, found = c.try(nil) {
		for at, findings := range byDocument(found) {
			if at == nobody { // All of it together is too much for what was enough before.
				at = c.anyLive()
			}
			c.demoted[at] = true
			if !c.documents[at].changed {
				c.refuse(at, findings)
			}
		}
	}
}

// anyLive is the document with the greatest claim that has not been demoted.
func (c *choice) anyLive() int {
	for i, d := range c.documents {
		if d.Live != nil && !c.demoted[i] {
			return i
		}
	}
	return 0 // There is one, or there would be nothing to find.
}

// blame says whose changes must go: those with a finding of their own, else those that break
// what did not change. Each is told why.
func (c *choice) blame(found policy.Diagnostics) map[int]bool {
	broken := byDocument(found)
	for _, contested := range []bool{false, true} {
		if drop := c.faulty(broken, contested); len(drop) > 0 {
			return drop
		}
	}
	drop := c.culprits()
	if len(drop) == 0 {
		drop = maps.Clone(c.pending)
	}
	for i := range drop {
		if c.documents[i].Present != nil {
			c.refuse(i, c.breaks(found))
		} else {
			c.tell(broken)
		}
	}
	return drop
}

// faulty are the changes with findings of their own, which are or are not contested.
func (c *choice) faulty(broken map[int]policy.Diagnostics, contested bool) map[int]bool {
	drop := map[int]bool{}
	for at, findings := range broken {
		if at == nobody {
			at = c.last()
		}
		if c.pending[at] && c.contested(findings) == contested {
			drop[at] = true
			c.refuse(at, findings)
		}
	}
	return drop
}

// tell puts findings on documents that did not change: nobody else is there to be told that a
// deletion must wait for them.
func (c *choice) tell(broken map[int]policy.Diagnostics) {
	for at, findings := range broken {
		if at != nobody && !c.documents[at].changed {
			c.refuse(at, findings)
		}
	}
}

// contested reports whether all findings on a document are about what others say that are as
// new: they may yet give way.
func (c *choice) contested(findings policy.Diagnostics) bool {
	return !slices.ContainsFunc(findings, func(d policy.Diagnostic) bool {
		return !slices.ContainsFunc(d.Related, func(r policy.Related) bool { return c.pending[index(r.Place)] })
	})
}

func (c *choice) refuseAll(findings policy.Diagnostics) {
	for i := range c.documents {
		c.refuse(i, findings)
	}
}

// refuse notes why the text of a document that people see is not valid; what was found first counts.
func (c *choice) refuse(i int, findings policy.Diagnostics) {
	if c.refused[i] == nil {
		c.refused[i] = findings
	}
}

// codeBreaks is the finding on a document that is in order but for what others need of it.
const codeBreaks policy.Code = "E-BREAKS-OTHERS"

// breaks tells whoever changes a document what it would break.
func (c *choice) breaks(others policy.Diagnostics) policy.Diagnostics {
	const shown = 3
	d := policy.Diagnostic{
		Place: policy.Place{Path: "spec"}, Code: codeBreaks, Severity: policy.Error, Message: "other documents need what was here before",
		Hint: "keep it, or change the others first or at the same time",
	}
	for _, other := range others[:min(len(others), shown)] {
		other.Place = c.named(other.Place)
		d.Message += "; " + other.String()
	}
	if more := len(others) - shown; more > 0 {
		d.Message += fmt.Sprintf("; and %d more", more)
	}
	return policy.Diagnostics{d}
}

// last is the document with the least claim whose change is pending, else any.
func (c *choice) last() int {
	for i := range slices.Backward(c.documents) {
		if c.pending[i] {
			return i
		}
	}
	return len(c.documents) - 1
}

// culprits are the changes that break something else even alone.
func (c *choice) culprits() map[int]bool {
	culprits, trials := map[int]bool{}, 0
	for i := range c.documents {
		if !c.pending[i] || trials == maxTrials {
			continue
		}
		trials++
		_, found := c.try(map[int]bool{i: true})
		for at := range byDocument(found) {
			if at != i {
				culprits[i] = true
			}
		}
	}
	return culprits
}

// readmit takes in what turns out to fit after all: it was refused, or demoted, for want of
// something that was refused with it.
func (c *choice) readmit(p *policy.Policy) *policy.Policy {
	for trials, again := 0, true; again; {
		again = false
		for i, d := range c.documents {
			change, back := d.changed && !c.pending[i] && !c.barred[i], !d.changed && c.demoted[i]
			if !change && !back || trials == maxTrials {
				continue
			}
			trials++
			c.pending[i], c.demoted[i] = change, c.demoted[i] && !back
			if better, _ := c.try(c.pending); better != nil {
				p, again = better, true
				delete(c.refused, i)
			} else {
				c.pending[i], c.demoted[i] = false, c.demoted[i] || back
			}
		}
	}
	return p
}
