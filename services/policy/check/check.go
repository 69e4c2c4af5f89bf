package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// Files reads files and checks their documents. The policy is nil if the findings have errors.
func Files(files []syntax.File, limits syntax.ParseLimits, options policy.Options) (*policy.Policy, policy.Diagnostics) {
	documents, unreadable := syntax.ParseFiles(files, limits)
	p, wrong := Documents(documents, options)
	found := unreadable.Merge(wrong)
	if found.HasErrors() {
		return nil, found
	}
	return p, found
}

// Documents checks documents. The policy is nil if the findings have errors, or if a document is not valid by itself.
func Documents(documents []*syntax.Document, options policy.Options) (*policy.Policy, policy.Diagnostics) {
	c := &checker{
		options: options.OrDefault(), documents: slices.Clone(documents), valid: true, complete: true,
		types: map[string]*draftType{}, unions: map[string]*draftUnion{}, actions: map[string]*draftAction{}, prefixes: map[string]*draftType{},
	}
	slices.SortStableFunc(c.documents, func(a, b *syntax.Document) int {
		return cmp.Or(cmp.Compare(a.Source.File, b.Source.File), cmp.Compare(a.Source.Document, b.Source.Document))
	})
	for _, d := range documents {
		c.valid, c.complete = c.valid && d.IsValid(), c.complete && d.IsComplete()
	}
	if err := options.Validate(); err != nil {
		c.findings.Add(policy.Place{}, policy.CodeOption, err.Error(), "correct the option")
	} else {
		c.runChecks()
	}
	found := c.findings.Diagnostics()
	if found.HasErrors() || !c.valid {
		return nil, found
	}
	return c.buildPolicy(), found
}

// checker holds the state of a check. Its types are those of the future policy, with data that only the check needs.
type checker struct {
	options   policy.Options
	documents []*syntax.Document
	// valid is true if all documents were read without errors, complete if no part of them is missing.
	valid, complete bool
	findings        policy.DiagnosticCollector

	types    map[string]*draftType
	unions   map[string]*draftUnion
	actions  map[string]*draftAction
	prefixes map[string]*draftType
	// These hold declarations in the order of the documents, with duplicates.
	allTypes   []*draftType
	allUnions  []*draftUnion
	allActions []*draftAction
	bindings   []*draftBinding

	// targets counts the targets of all relations after expansion.
	targets int
	// stamp marks the types that one expansion has visited.
	stamp     int
	ungranted []policy.ActionOnType
}

func (c *checker) runChecks() {
	c.declareAll()
	// If a document has errors, they explain why it declares no type.
	if len(c.allTypes) == 0 && c.valid {
		c.reportAbsent(policy.Place{}, policy.CodeEmpty, "there is no policy: no document declares a resource type",
			"name the files or folders of a policy; its documents declare resourceTypes, unions, actions and actionBindings")
	}
	if !c.checkLimits() || !c.expandUnionsAndBindings() {
		return
	}
	c.reportInvalidConditions()
	c.reportCollisions()
	c.ensureRoleType()
	// If the policy has errors, it is too early to report missing parts.
	if c.valid && !c.findings.HasErrors() {
		c.reportUngranted()
		c.reportUnused()
	}
}

// expandUnionsAndBindings replaces unions by their members, and reports whether the result is within the limits.
func (c *checker) expandUnionsAndBindings() bool {
	c.expandUnions()
	if !c.expandTargets() {
		c.reportLimit(fmt.Sprintf("the relations of the policy have more than %d targets", maxTargets))
		return false
	}
	if !c.expandBindings() {
		c.reportLimit(fmt.Sprintf("the policy binds more than %d pairs of type and action", maxBound))
		return false
	}
	return true
}

func (c *checker) reportLimit(message string) {
	c.findings.Add(policy.Place{}, policy.CodeLimit, message, "split the policy: each use of a union counts once for every member")
}

// maxCells bounds the table of bound actions by type or union, in bits: 64 MiB.
const maxCells = 1 << 29

func (c *checker) checkLimits() bool {
	rows, columns := len(c.allTypes)+len(c.allUnions), len(c.allActions)
	if rows*columns <= maxCells {
		return true
	}
	c.reportLimit(fmt.Sprintf("%d types and unions with %d actions are too many together", rows, columns))
	return false
}

// reportAbsent reports a missing part, unless it may be in a part that could not be read.
func (c *checker) reportAbsent(place policy.Place, code policy.Code, message, hint string) {
	if c.complete {
		c.findings.Add(place, code, message, hint)
	}
}

// requireName reports whether a name is present, and adds a finding if not.
func (c *checker) requireName(source *policy.DocumentSource, name syntax.Name, key string, of policy.Position) bool {
	if name.Text != "" {
		return true
	}
	c.reportAbsent(source.PlaceAt(cmp.Or(name.At, of)), policy.CodeMissing, key+" is missing", "add `"+key+": ` and a name")
	return false
}

func (c *checker) buildPolicy() *policy.Policy {
	p := &policy.Policy{Options: c.options, Ungranted: c.ungranted}
	for _, d := range c.documents {
		p.Sources = append(p.Sources, d.Source)
	}
	for _, t := range c.allTypes {
		p.Types = append(p.Types, t.Type)
	}
	for _, u := range c.allUnions {
		p.Unions = append(p.Unions, u.Union)
	}
	for _, a := range c.allActions {
		p.Actions = append(p.Actions, a.Action)
	}
	slices.SortFunc(p.Types, func(a, b *policy.Type) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(p.Unions, func(a, b *policy.Union) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(p.Actions, func(a, b *policy.Action) int { return strings.Compare(a.Name, b.Name) })
	return p
}
