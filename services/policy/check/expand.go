package check

import (
	"cmp"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

const (
	// maxBound bounds the pairs of type and action in a policy, maxTargets the pairs of relation and target.
	maxBound   = 1_000_000
	maxTargets = 4_000_000
)

// draftRelation is a relation under construction.
type draftRelation struct {
	*policy.Relation
	of   *draftType
	refs []relationTarget
	// waiting holds bindings that no subject can have yet, but may get through this relation.
	waiting []waitingGrant
}

// relationTarget is one target: a type or a union.
type relationTarget struct {
	t *draftType
	u *draftUnion
}

func (r relationTarget) memberTypes() []*draftType {
	if r.t != nil {
		return []*draftType{r.t}
	}
	return r.u.members
}

func (r relationTarget) targetName() string {
	if r.t != nil {
		return r.t.Name
	}
	return r.u.Name
}

// compareTargets orders unions before types, and large unions before small ones.
func (r relationTarget) compareTargets(o relationTarget) int {
	size := func(r relationTarget) int {
		if r.t != nil {
			return 0
		}
		return 1 + len(r.u.members)
	}
	return cmp.Or(cmp.Compare(size(o), size(r)), cmp.Compare(r.targetName(), o.targetName()))
}

func (c *checker) expandUnions() {
	for _, u := range c.allUnions {
		first := map[string]syntax.Name{}
		for _, written := range u.written {
			if !c.requireName(u.Source, written, "name", u.At) {
				continue
			}
			place := u.Source.PlaceAt(written.At)
			if before, found := first[written.Text]; found {
				c.findings.Add(place, policy.CodeDupMember, "union "+quoteName(u.Name)+" lists "+quoteName(written.Text)+" twice", "keep it once").
					AddRelated(u.Source.PlaceAt(before.At), "the first")
				continue
			}
			first[written.Text] = written
			if t := c.types[written.Text]; t != nil {
				t.used = true
				t.memberOf = append(t.memberOf, u)
				u.members = append(u.members, t)
			} else {
				c.reportInvalidMember(place, u, written.Text)
			}
		}
		slices.SortFunc(u.members, compareTypeNames)
		u.Members = policyTypes(u.members)
	}
}

func (c *checker) reportInvalidMember(place policy.Place, u *draftUnion, name string) {
	if other := c.unions[name]; other != nil {
		c.findings.Add(place, policy.CodeUnionOfUnion, "member "+quoteName(name)+" of union "+quoteName(u.Name)+" is a union itself", "list its types instead").
			AddRelated(other.Source.PlaceAt(other.At), "the union")
		return
	}
	c.reportUnknownType(place, "member", name)
}

func (c *checker) reportUnknownType(place policy.Place, what, name string) {
	c.reportAbsent(place, policy.CodeUnknownType, what+" "+quoteName(name)+" is not declared", "declare a resource type of that name, or correct the name")
}

// expandTargets resolves the targets of relations. It stops and returns false if there are more than maxTargets.
func (c *checker) expandTargets() bool {
	for _, t := range c.allTypes {
		first := map[string]*draftRelation{}
		for _, written := range t.declared.Relationships {
			r := c.newDraftRelation(t, written)
			if before := first[r.Name]; before != nil && r.Name != "" {
				c.findings.Add(t.Source.PlaceAt(r.At), policy.CodeDupRelation, "type "+quoteName(t.Name)+" has relation "+quoteName(r.Name)+" twice",
					"keep one relationship, with the targets of both").
					AddRelated(t.Source.PlaceAt(before.At), "the first")
				continue
			}
			first[r.Name] = r
			if c.targets += len(r.Targets); c.targets > maxTargets {
				return false
			}
			t.relations = append(t.relations, r)
		}
		slices.SortFunc(t.relations, func(a, b *draftRelation) int { return strings.Compare(a.Name, b.Name) })
		for _, r := range t.relations {
			t.Relations = append(t.Relations, r.Relation)
		}
	}
	return true
}

func (c *checker) newDraftRelation(t *draftType, written syntax.Relationship) *draftRelation {
	r := &draftRelation{of: t, Relation: &policy.Relation{
		Name: written.Relation.Text, Source: t.Source, At: written.Relation.At,
	}}
	if c.requireName(t.Source, written.Relation, "relation", written.At) {
		place := t.Source.PlaceAt(r.At)
		if policy.IsRelationName(r.Name) {
			c.warnUnderscore(place, "relation", r.Name)
		} else {
			c.findings.Add(place, policy.CodeName, quoteName(r.Name)+" cannot name a relation", "use lower-case letters and underscores, first a letter")
		}
	}
	if len(written.Targets) == 0 {
		c.reportAbsent(t.Source.PlaceAt(written.At), policy.CodeNoTargets, "relation "+quoteName(r.Name)+" of "+quoteName(t.Name)+" leads nowhere",
			"list the types that it leads to under targetTypes")
	}
	c.resolveTargets(r, written)
	return r
}

// resolveTargets finds the targets of a relation, sorted by name. A relation to one union shares the member list of the union.
func (c *checker) resolveTargets(r *draftRelation, written syntax.Relationship) {
	first := map[string]syntax.Name{}
	r.References = make([]policy.TypeReference, 0, len(written.Targets))
	for _, target := range written.Targets {
		if !c.requireName(r.Source, target, "name", written.At) {
			continue
		}
		place := r.Source.PlaceAt(target.At)
		if before, found := first[target.Text]; found {
			c.findings.Add(place, policy.CodeDupTarget, "relation "+quoteName(r.Name)+" lists "+quoteName(target.Text)+" twice", "keep it once").
				AddRelated(r.Source.PlaceAt(before.At), "the first")
			continue
		}
		first[target.Text] = target
		r.References = append(r.References, policy.TypeReference{Name: target.Text, At: target.At})
		switch t, u := c.types[target.Text], c.unions[target.Text]; {
		case t != nil:
			t.used = true
			r.refs = append(r.refs, relationTarget{t: t})
		case u != nil:
			u.used = true
			r.refs = append(r.refs, relationTarget{u: u})
		default:
			c.reportUnknownType(place, "target", target.Text)
		}
	}
	if len(r.refs) == 1 && r.refs[0].u != nil {
		r.Targets = r.refs[0].u.Members
		return
	}
	r.Targets = c.mergeTargets(r, first)
}

// mergeTargets returns the members of all targets, each once, and warns of targets that add none. It takes large unions first
// and types last, so that the order in the document makes no difference.
func (c *checker) mergeTargets(r *draftRelation, written map[string]syntax.Name) []*policy.Type {
	var all []*draftType
	c.stamp++
	for _, target := range slices.SortedFunc(slices.Values(r.refs), relationTarget.compareTargets) {
		before := len(all)
		for _, t := range target.memberTypes() {
			if t.stamp != c.stamp {
				t.stamp = c.stamp
				all = append(all, t)
			}
		}
		if len(all) == before && len(target.memberTypes()) > 0 {
			c.warnRedundantTarget(r, written, target)
		}
	}
	slices.SortFunc(all, compareTypeNames)
	return policyTypes(all)
}

func (c *checker) warnRedundantTarget(r *draftRelation, written map[string]syntax.Name, target relationTarget) {
	c.findings.Add(r.Source.PlaceAt(written[target.targetName()].At), policy.CodeRedundantTarget,
		"target "+quoteName(target.targetName())+" of relation "+quoteName(r.Name)+" is already listed through a union", "remove it")
}

func compareTypeNames(a, b *draftType) int { return strings.Compare(a.Name, b.Name) }

func policyTypes(list []*draftType) []*policy.Type {
	all := make([]*policy.Type, len(list))
	for i, t := range list {
		all[i] = t.Type
	}
	return all
}
