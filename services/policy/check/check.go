package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// Files reads files and checks what is in them. There is a policy unless the findings have errors.
func Files(files []syntax.File, limits syntax.Limits, options policy.Options) (*policy.Policy, policy.Diagnostics) {
	documents, unreadable := syntax.Parse(files, limits)
	p, wrong := Documents(documents, options)
	found := unreadable.Join(wrong)
	if found.HasErrors() {
		return nil, found
	}
	return p, found
}

// Documents checks documents. There is a policy unless the findings have errors, or a document is not valid by itself.
func Documents(documents []*syntax.Document, options policy.Options) (*policy.Policy, policy.Diagnostics) {
	c := &checker{
		options: options.OrDefault(), documents: slices.Clone(documents), valid: true, complete: true,
		types: map[string]*typ{}, unions: map[string]*union{}, actions: map[string]*action{}, prefixes: map[string]*typ{},
	}
	slices.SortStableFunc(c.documents, func(a, b *syntax.Document) int {
		return cmp.Or(cmp.Compare(a.Source.File, b.Source.File), cmp.Compare(a.Source.Document, b.Source.Document))
	})
	for _, d := range documents {
		c.valid, c.complete = c.valid && d.Valid(), c.complete && d.Complete()
	}
	if err := options.Validate(); err != nil {
		c.findings.Add(policy.Place{}, policy.CodeOption, err.Error(), "correct the option")
	} else {
		c.check()
	}
	found := c.findings.Diagnostics()
	if found.HasErrors() || !c.valid {
		return nil, found
	}
	return c.policy(), found
}

// checker holds what is known so far. Its types are those of the policy to be, and what the checks need besides.
type checker struct {
	options   policy.Options
	documents []*syntax.Document
	// valid says that all documents were read without errors, complete that no part of them is missing.
	valid, complete bool
	findings        policy.Collector

	types    map[string]*typ
	unions   map[string]*union
	actions  map[string]*action
	prefixes map[string]*typ
	// In the order of the documents, with duplicates.
	allTypes   []*typ
	allUnions  []*union
	allActions []*action
	bindings   []*binding

	// targets counts what expansion made of relations.
	targets int
	// stamp marks the types that have been met in one expansion.
	stamp     int
	ungranted []policy.Grant
}

func (c *checker) check() {
	c.declare()
	// A document with errors says by these why it declares none.
	if len(c.allTypes) == 0 && c.valid {
		c.absent(policy.Place{}, policy.CodeEmpty, "there is no policy: no document declares a resource type",
			"name the files or folders of a policy; its documents declare resourceTypes, unions, actions and actionBindings")
	}
	if !c.affordable() || !c.expand() {
		return
	}
	c.verify()
	c.findCollisions()
	c.addRoles()
	// Of a policy that has errors, it would be too early to tell what it lacks.
	if c.valid && !c.findings.HasErrors() {
		c.findUngranted()
		c.warn()
	}
}

// expand takes unions away, and reports whether what results is small enough to look at.
func (c *checker) expand() bool {
	c.expandUnions()
	if !c.expandTargets() {
		c.refuse(fmt.Sprintf("the relations of the policy have more than %d targets", maxTargets))
		return false
	}
	if !c.expandBindings() {
		c.refuse(fmt.Sprintf("the policy binds more than %d pairs of type and action", maxBound))
		return false
	}
	return true
}

func (c *checker) refuse(message string) {
	c.findings.Add(policy.Place{}, policy.CodeLimit, message, "split the policy: unions multiply what refers to them")
}

// maxCells bounds the table of which action is bound to which type or union, to 64 MiB.
const maxCells = 1 << 29

func (c *checker) affordable() bool {
	rows, columns := len(c.allTypes)+len(c.allUnions), len(c.allActions)
	if rows*columns <= maxCells {
		return true
	}
	c.refuse(fmt.Sprintf("%d types and unions with %d actions are too many together", rows, columns))
	return false
}

// absent reports something that is missing, unless it may be in what could not be read.
func (c *checker) absent(place policy.Place, code policy.Code, message, hint string) {
	if c.complete {
		c.findings.Add(place, code, message, hint)
	}
}

// required reports a name that is missing.
func (c *checker) required(source *policy.Source, name syntax.Name, key string, of policy.Position) bool {
	if name.Text != "" {
		return true
	}
	c.absent(source.At(cmp.Or(name.At, of)), policy.CodeMissing, key+" is missing", "add `"+key+": ` and a name")
	return false
}

func (c *checker) policy() *policy.Policy {
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
