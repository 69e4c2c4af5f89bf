package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Options holds the choices that the language leaves open. Zero fields mean defaults.
type Options struct {
	// Strict adds warnings about names that the strict grammar forbids.
	Strict bool
	// RoleSuffix is appended to the name of an action to name the relation of its role bindings. The default is
	// "_role".
	RoleSuffix string
	// RoleType is the type of roles. The default is "role".
	RoleType string
	// RoleRelation is the relation from a role to its subjects. The default is "subject".
	RoleRelation string
	// SubjectTypes holds the types that can have roles. The default is "user". It has no effect if the policy declares
	// the type of roles.
	SubjectTypes []string
	// Partial leaves out the types of roles and subjects unless the policy declares them, because they are defined
	// elsewhere.
	Partial bool
}

// OrDefault returns the options with all defaults filled in.
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

// Validate returns an error that names the invalid option.
func (o Options) Validate() error {
	o = o.OrDefault()
	switch {
	case !strings.HasPrefix(o.RoleSuffix, "_") || !consistsOf(o.RoleSuffix, lower+digits+"_") || strings.HasSuffix(o.RoleSuffix, "_"):
		return fmt.Errorf("role suffix %.64q: use _, then lower-case letters, digits and _, without _ at the end", o.RoleSuffix)
	case !IsTypeName(o.RoleType):
		return fmt.Errorf("role type %.64q: use a lower-case letter, then lower-case letters, digits and _", o.RoleType)
	case !IsRelationName(o.RoleRelation):
		return fmt.Errorf("role relation %.64q: use a lower-case letter, then lower-case letters and _", o.RoleRelation)
	case slices.Contains(o.SubjectTypes, o.RoleType):
		return fmt.Errorf("subject type %.64q is the type of roles: name another", o.RoleType)
	}
	for _, t := range o.SubjectTypes {
		if !IsTypeName(t) {
			return fmt.Errorf("subject type %.64q: use a lower-case letter, then lower-case letters, digits and _", t)
		}
	}
	return nil
}

// RoleRelationOf returns the relation that holds the role bindings of an action.
func (o Options) RoleRelationOf(action string) string { return action + o.RoleSuffix }
