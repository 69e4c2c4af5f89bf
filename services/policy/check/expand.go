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

// relation is a relation under construction.
type relation struct {
	*policy.Relation
	of   *typ
	refs []ref
	// waiting holds bindings that no subject can have yet, but may get through this relation.
	waiting []waiting
}

// ref is one target: a type or a union.
type ref struct {
	t *typ
	u *union
}

func (r ref) members() []*typ {
	if r.t != nil {
		return []*typ{r.t}
	}
	return r.u.members
}

func (r ref) name() string {
	if r.t != nil {
		return r.t.Name
	}
	return r.u.Name
}

// compare orders unions before types, and large unions before small ones.
func (r ref) compare(o ref) int {
	size := func(r ref) int {
		if r.t != nil {
			return 0
		}
		return 1 + len(r.u.members)
	}
	return cmp.Or(cmp.Compare(size(o), size(r)), cmp.Compare(r.name(), o.name()))
}

func (c *checker) expandUnions() {
	for _, u := range c.allUnions {
		first := map[string]syntax.Name{}
		for _, written := range u.written {
			if !c.requireName(u.Source, written, "name", u.At) {
				continue
			}
			place := u.Source.At(written.At)
			if before, found := first[written.Text]; found {
				c.findings.Add(place, policy.CodeDupMember, "union "+quote(u.Name)+" lists "+quote(written.Text)+" twice", "keep it once").
					Also(u.Source.At(before.At), "the first")
				continue
			}
			first[written.Text] = written
			if t := c.types[written.Text]; t != nil {
				t.used = true
				t.memberOf = append(t.memberOf, u)
				u.members = append(u.members, t)
			} else {
				c.notAMember(place, u, written.Text)
			}
		}
		slices.SortFunc(u.members, byName)
		u.Members = types(u.members)
	}
}

func (c *checker) notAMember(place policy.Place, u *union, name string) {
	if other := c.unions[name]; other != nil {
		c.findings.Add(place, policy.CodeUnionOfUnion, "member "+quote(name)+" of union "+quote(u.Name)+" is a union itself", "list its types instead").
			Also(other.Source.At(other.At), "the union")
		return
	}
	c.unknownType(place, "member", name)
}

func (c *checker) unknownType(place policy.Place, what, name string) {
	c.reportAbsent(place, policy.CodeUnknownType, what+" "+quote(name)+" is not declared", "declare a resource type of that name, or correct the name")
}

// expandTargets resolves the targets of relations. It stops and returns false if there are more than maxTargets.
func (c *checker) expandTargets() bool {
	for _, t := range c.allTypes {
		first := map[string]*relation{}
		for _, written := range t.declared.Relationships {
			r := c.relation(t, written)
			if before := first[r.Name]; before != nil && r.Name != "" {
				c.findings.Add(t.Source.At(r.At), policy.CodeDupRelation, "type "+quote(t.Name)+" has relation "+quote(r.Name)+" twice",
					"keep one relationship, with the targets of both").
					Also(t.Source.At(before.At), "the first")
				continue
			}
			first[r.Name] = r
			if c.targets += len(r.Targets); c.targets > maxTargets {
				return false
			}
			t.relations = append(t.relations, r)
		}
		slices.SortFunc(t.relations, func(a, b *relation) int { return strings.Compare(a.Name, b.Name) })
		for _, r := range t.relations {
			t.Relations = append(t.Relations, r.Relation)
		}
	}
	return true
}

func (c *checker) relation(t *typ, written syntax.Relationship) *relation {
	r := &relation{of: t, Relation: &policy.Relation{
		Name: written.Relation.Text, Source: t.Source, At: written.Relation.At,
	}}
	if c.requireName(t.Source, written.Relation, "relation", written.At) {
		place := t.Source.At(r.At)
		if policy.IsRelationName(r.Name) {
			c.warnUnderscore(place, "relation", r.Name)
		} else {
			c.findings.Add(place, policy.CodeName, quote(r.Name)+" cannot name a relation", "use lower-case letters and underscores, first a letter")
		}
	}
	if len(written.Targets) == 0 {
		c.reportAbsent(t.Source.At(written.At), policy.CodeNoTargets, "relation "+quote(r.Name)+" of "+quote(t.Name)+" leads nowhere",
			"list the types that it leads to under targetTypes")
	}
	c.resolve(r, written)
	return r
}

// resolve finds the targets of a relation, sorted by name. A relation to one union shares the member list of the union.
func (c *checker) resolve(r *relation, written syntax.Relationship) {
	first := map[string]syntax.Name{}
	r.References = make([]policy.Reference, 0, len(written.Targets))
	for _, target := range written.Targets {
		if !c.requireName(r.Source, target, "name", written.At) {
			continue
		}
		place := r.Source.At(target.At)
		if before, found := first[target.Text]; found {
			c.findings.Add(place, policy.CodeDupTarget, "relation "+quote(r.Name)+" lists "+quote(target.Text)+" twice", "keep it once").
				Also(r.Source.At(before.At), "the first")
			continue
		}
		first[target.Text] = target
		r.References = append(r.References, policy.Reference{Name: target.Text, At: target.At})
		switch t, u := c.types[target.Text], c.unions[target.Text]; {
		case t != nil:
			t.used = true
			r.refs = append(r.refs, ref{t: t})
		case u != nil:
			u.used = true
			r.refs = append(r.refs, ref{u: u})
		default:
			c.unknownType(place, "target", target.Text)
		}
	}
	if len(r.refs) == 1 && r.refs[0].u != nil {
		r.Targets = r.refs[0].u.Members
		return
	}
	r.Targets = c.merge(r, first)
}

// merge returns the members of all targets, each once, and warns of targets that add none. It takes large unions first
// and types last, so that the order in the document makes no difference.
func (c *checker) merge(r *relation, written map[string]syntax.Name) []*policy.Type {
	var all []*typ
	c.stamp++
	for _, target := range slices.SortedFunc(slices.Values(r.refs), ref.compare) {
		before := len(all)
		for _, t := range target.members() {
			if t.stamp != c.stamp {
				t.stamp = c.stamp
				all = append(all, t)
			}
		}
		if len(all) == before && len(target.members()) > 0 {
			c.warnRedundant(r, written, target)
		}
	}
	slices.SortFunc(all, byName)
	return types(all)
}

func (c *checker) warnRedundant(r *relation, written map[string]syntax.Name, target ref) {
	c.findings.Add(r.Source.At(written[target.name()].At), policy.CodeRedundantTarget,
		"target "+quote(target.name())+" of relation "+quote(r.Name)+" is there already, through a union", "remove it")
}

func byName(a, b *typ) int { return strings.Compare(a.Name, b.Name) }

func types(list []*typ) []*policy.Type {
	all := make([]*policy.Type, len(list))
	for i, t := range list {
		all[i] = t.Type
	}
	return all
}
