package check

import (
	"fmt"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// ensureRoleType ensures that role bindings have a type of roles. It is the declared type, or one that ensureRoleType
// creates.
func (c *checker) ensureRoleType() {
	bound := slices.IndexFunc(c.bindings, func(b *draftBinding) bool { return b.RoleBinding && len(b.members) > 0 })
	if bound < 0 {
		return
	}
	o := c.options
	c.reportUnionAsType(o.RoleType, "roles")
	role := c.types[o.RoleType]
	switch {
	case role != nil && role.relationNamed(o.RoleRelation) == nil:
		c.reportAbsentRoleRelation(role)
	case role == nil && !o.Partial:
		r := &policy.Relation{Name: o.RoleRelation}
		for _, name := range o.SubjectTypes {
			c.reportUnionAsType(name, "subjects")
			r.Targets = append(r.Targets, c.ensureType(name).Type)
		}
		c.addUndeclaredType(o.RoleType).Relations = []*policy.Relation{r}
	case role != nil:
		role.used = true
	}
}

func (c *checker) reportUnionAsType(name, what string) {
	if u := c.unions[name]; u != nil {
		c.findings.Add(u.Source.PlaceAt(u.At), policy.CodeRole, "union "+quoteName(name)+" has the name of the type of "+what,
			"rename the union, or choose another name for the type of "+what)
	}
}

func (c *checker) reportAbsentRoleRelation(role *draftType) {
	o := c.options
	c.reportAbsent(role.Source.PlaceAt(role.At), policy.CodeRole,
		fmt.Sprintf("type %s is the type of roles and lacks the relation %s to their holders", quoteName(o.RoleType), quoteName(o.RoleRelation)),
		"add the relationship, or rename the type: then roles get a type of their own")
}

// ensureType returns the type of that name, and creates it unless the policy declares it.
func (c *checker) ensureType(name string) *draftType {
	if t := c.types[name]; t != nil {
		t.used = true
		return t
	}
	return c.addUndeclaredType(name)
}

func (c *checker) addUndeclaredType(name string) *draftType {
	t := &draftType{Type: &policy.Type{Name: name}, used: true}
	c.types[name] = t
	c.allTypes = append(c.allTypes, t)
	return t
}
