package check

import (
	"fmt"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// addRoles ensures that role bindings have a type of roles. It is the declared type, or one that addRoles creates.
func (c *checker) addRoles() {
	bound := slices.IndexFunc(c.bindings, func(b *binding) bool { return b.RoleBinding && len(b.members) > 0 })
	if bound < 0 {
		return
	}
	o := c.options
	c.unionAsType(o.RoleType, "roles")
	role := c.types[o.RoleType]
	switch {
	case role != nil && role.relation(o.RoleRelation) == nil:
		c.absentRoleRelation(role)
	case role == nil && !o.Partial:
		r := &policy.Relation{Name: o.RoleRelation}
		for _, name := range o.SubjectTypes {
			c.unionAsType(name, "subjects")
			r.Targets = append(r.Targets, c.subject(name).Type)
		}
		c.addUndeclaredType(o.RoleType).Relations = []*policy.Relation{r}
	case role != nil:
		role.used = true
	}
}

func (c *checker) unionAsType(name, what string) {
	if u := c.unions[name]; u != nil {
		c.findings.Add(u.Source.At(u.At), policy.CodeRole, "union "+quote(name)+" has the name of the type of "+what,
			"rename the union, or choose another name for the type of "+what)
	}
}

func (c *checker) absentRoleRelation(role *typ) {
	o := c.options
	c.reportAbsent(role.Source.At(role.At), policy.CodeRole,
		fmt.Sprintf("type %s is the type of roles and lacks the relation %s to their holders", quote(o.RoleType), quote(o.RoleRelation)),
		"add the relationship, or rename the type: then roles get a type of their own")
}

// subject returns the type of that name, and creates it unless the policy declares it.
func (c *checker) subject(name string) *typ {
	if t := c.types[name]; t != nil {
		t.used = true
		return t
	}
	return c.addUndeclaredType(name)
}

func (c *checker) addUndeclaredType(name string) *typ {
	t := &typ{Type: &policy.Type{Name: name}, used: true}
	c.types[name] = t
	c.allTypes = append(c.allTypes, t)
	return t
}
