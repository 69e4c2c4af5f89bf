package check

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// draftType is a type under construction.
type draftType struct {
	*policy.Type
	declared syntax.ResourceType
	// relations holds the relations of the type, sorted by name.
	relations []*draftRelation
	// bound holds the actions bound to the type, granted those that a subject can have.
	bound, granted bitSet
	// stamp is the number of the last expansion that visited the type.
	stamp int
	used  bool
	// readers holds relations with bindings that wait for actions on this type. Readers of its unions wait for them,
	// too.
	readers  []*draftRelation
	memberOf []*draftUnion
	queued   bool
}

// draftUnion is a union under construction.
type draftUnion struct {
	*policy.Union
	written []syntax.Name
	members []*draftType
	// all holds the actions bound to every member, any those that a subject can have on some member.
	all, any bitSet
	readers  []*draftRelation
	used     bool
}

// draftAction is an action under construction. Its number is its position by name.
type draftAction struct {
	*policy.Action
	number int
	used   bool
}

func (c *checker) declareAll() {
	for _, d := range c.documents {
		for _, written := range d.ResourceTypes {
			c.declareType(d.Source, written)
		}
		for _, written := range d.Unions {
			c.declareUnion(d.Source, written)
		}
		for _, written := range d.Actions {
			c.declareAction(d.Source, written)
		}
	}
	for _, u := range c.allUnions {
		if t := c.types[u.Name]; t != nil {
			c.findings.Add(u.Source.PlaceAt(u.At), policy.CodeTypeIsUnion, quoteName(u.Name)+" is both a type and a union", "rename one of them").
				AddRelated(t.Source.PlaceAt(t.At), "the type")
		}
	}
	slices.SortStableFunc(c.allActions, func(a, b *draftAction) int { return strings.Compare(a.Name, b.Name) })
	for i, a := range c.allActions {
		a.number = i
	}
}

func (c *checker) declareType(source *policy.DocumentSource, written syntax.ResourceType) {
	t := &draftType{declared: written, Type: &policy.Type{
		Name: written.Name.Text, IDPrefix: written.IDPrefix.Text, Source: source, At: written.Name.At,
	}}
	c.allTypes = append(c.allTypes, t)
	if c.requireName(source, written.Name, "name", written.At) {
		place := source.PlaceAt(t.At)
		c.checkTypeName(place, "type", t.Name)
		if first := c.types[t.Name]; first != nil {
			c.findings.Add(place, policy.CodeDupType, "type "+quoteName(t.Name)+" is declared twice", "keep one declaration, with the relationships of both").
				AddRelated(first.Source.PlaceAt(first.At), "the first")
		} else {
			c.types[t.Name] = t
		}
	}
	c.checkIDPrefix(t)
}

func (c *checker) checkIDPrefix(t *draftType) {
	prefix := t.declared.IDPrefix
	if !c.requireName(t.Source, prefix, "idPrefix", t.declared.At) {
		return
	}
	place := t.Source.PlaceAt(prefix.At)
	if !policy.IsIDPrefix(prefix.Text) {
		c.findings.Add(place, policy.CodeIDPrefix, "idPrefix "+quoteName(prefix.Text)+" is not a prefix of ids",
			"use three or more lower-case letters and digits")
		return
	}
	first := c.prefixes[prefix.Text]
	if first == nil {
		c.prefixes[prefix.Text] = t
		return
	}
	// A type that is declared twice is already reported.
	if first.Name != t.Name {
		c.findings.Add(place, policy.CodeDupIDPrefix,
			"types "+quoteName(first.Name)+" and "+quoteName(t.Name)+" have the same idPrefix "+quoteName(prefix.Text),
			"give each type a prefix of its own: ids must tell their type").
			AddRelated(first.Source.PlaceAt(first.declared.IDPrefix.At), "the first")
	}
}

func (c *checker) declareUnion(source *policy.DocumentSource, written syntax.Union) {
	u := &draftUnion{written: written.Members, Union: &policy.Union{Name: written.Name.Text, Source: source, At: written.Name.At}}
	c.allUnions = append(c.allUnions, u)
	if len(written.Members) == 0 {
		c.reportAbsent(source.PlaceAt(written.At), policy.CodeEmptyUnion, "union "+quoteName(u.Name)+" has no members",
			"list types under resourceTypes, or remove the union")
	}
	if !c.requireName(source, written.Name, "name", written.At) {
		return
	}
	place := source.PlaceAt(u.At)
	c.checkTypeName(place, "union", u.Name)
	if first := c.unions[u.Name]; first != nil {
		c.findings.Add(place, policy.CodeDupUnion, "union "+quoteName(u.Name)+" is declared twice", "keep one declaration, with the members of both").
			AddRelated(first.Source.PlaceAt(first.At), "the first")
		return
	}
	c.unions[u.Name] = u
}

func (c *checker) declareAction(source *policy.DocumentSource, written syntax.Action) {
	a := &draftAction{Action: &policy.Action{Name: written.Name.Text, Source: source, At: written.Name.At}}
	c.allActions = append(c.allActions, a)
	if !c.requireName(source, written.Name, "name", written.At) {
		return
	}
	place := source.PlaceAt(a.At)
	if !policy.IsActionName(a.Name) {
		c.findings.Add(place, policy.CodeName, quoteName(a.Name)+" cannot name an action",
			"use two or more lower-case letters and underscores, first a letter")
	}
	if first := c.actions[a.Name]; first != nil {
		c.findings.Add(place, policy.CodeDupAction, "action "+quoteName(a.Name)+" is declared twice", "keep one declaration").
			AddRelated(first.Source.PlaceAt(first.At), "the first")
		return
	}
	c.actions[a.Name] = a
}

func (c *checker) checkTypeName(place policy.Place, what, name string) {
	if !policy.IsTypeName(name) {
		c.findings.Add(place, policy.CodeName, quoteName(name)+" cannot name a "+what, "use lower-case letters, digits and underscores, first a letter")
		return
	}
	c.warnUnderscore(place, what, name)
}

func (c *checker) warnUnderscore(place policy.Place, what, name string) {
	if c.options.Strict && strings.Contains(name, "_") {
		c.findings.Add(place, policy.CodeUnderscore, "the name of "+what+" "+quoteName(name)+" has an underscore",
			"the strict grammar has only letters and digits in the names of types and unions, only letters in those of relations")
	}
}
