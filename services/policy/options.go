package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Options are the choices that the language leaves to who uses it. Zero fields are its defaults.
type Options struct {
	// Strict warns of names that the strict grammar does not have.
	Strict bool
	// RoleSuffix is what an action's name becomes the name of its role bindings by, "_role" by default.
	RoleSuffix string
	// RoleType is the type of roles, "role" by default.
	RoleType string
	// RoleRelation leads from a role to its subjects, "subject" by default.
	RoleRelation string
	// SubjectTypes can have roles, "user" by default. They count only where the policy does not declare the type of roles.
	SubjectTypes []string
	// Partial leaves out the types of roles and subjects unless the policy declares them: something else defines them.
	Partial bool
}

// OrDefault returns the options with every default filled in.
func (o Options) OrDefault() Options {
	o.RoleSuffix = cmp.Or(o.RoleSuffix, "_role")
	o.RoleType = cmp.Or(o.RoleType, "role")
	o.RoleRelation = cmp.Or(o.RoleRelation, "subject")
	if len(o.SubjectTypes) == 0 {
		o.SubjectTypes = []string{"user"}
	}
	o.SubjectTypes = slices.Compact(slices.Sorted(slices.Values(o.SubjectTypes)))
	return o
}

// Validate returns an error that says which option cannot be.
func (o Options) Validate() error {
	o = o.OrDefault()
	switch {
	case !strings.HasPrefix(o.RoleSuffix, "_") || !consistsOf(o.RoleSuffix, lower+digits+"_") || strings.HasSuffix(o.RoleSuffix, "_"):
		return fmt.Errorf("role suffix %.64q: begin with _, go on with lower-case letters, digits and _, end with no _", o.RoleSuffix)
	case !IsTypeName(o.RoleType):
		return fmt.Errorf("role type %.64q: begin with a lower-case letter, go on with those, digits and _", o.RoleType)
	case !IsRelationName(o.RoleRelation):
		return fmt.Errorf("role relation %.64q: begin with a lower-case letter, go on with those and _", o.RoleRelation)
	case slices.Contains(o.SubjectTypes, o.RoleType):
		return fmt.Errorf("subject type %.64q is the type of roles: name another", o.RoleType)
	}
	for _, t := range o.SubjectTypes {
		if !IsTypeName(t) {
			return fmt.Errorf("subject type %.64q: begin with a lower-case letter, go on with those, digits and _", t)
		}
	}
	return nil
}

// RoleRelationOf is the relation that holds the role bindings of an action.
func (o Options) RoleRelationOf(action string) string { return action + o.RoleSuffix }
