package iam

import (
	"cmp"
	"maps"
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// RolePermissions are what a role gives.
type RolePermissions struct {
	// All are its own and those of the roles that it inherits, sorted.
	All []string
	// Unknown are those of them that no ProtectedResource has. They give nothing.
	Unknown []string
	// Missing are inherited roles that are not there, as namespace/name.
	Missing []string
}

// Effective are the permissions that a role gives, those of all that it inherits included. Roles
// may inherit each other.
func (o *Objects) Effective(role *iamv1alpha1.Role) RolePermissions {
	all, missing := map[string]bool{}, map[string]bool{}
	o.inherit(role, all, missing, map[string]bool{})
	p := RolePermissions{All: slices.Sorted(maps.Keys(all)), Missing: slices.Sorted(maps.Keys(missing))}
	for _, permission := range p.All {
		if _, known := o.Registry.Relation(permission); !known {
			p.Unknown = append(p.Unknown, permission)
		}
	}
	return p
}

func (o *Objects) inherit(role *iamv1alpha1.Role, all, missing, seen map[string]bool) {
	name := role.Namespace + "/" + role.Name
	if seen[name] {
		return
	}
	seen[name] = true
	for _, permission := range role.Spec.IncludedPermissions {
		all[permission] = true
	}
	for _, ref := range role.Spec.InheritedRoles {
		namespace := cmp.Or(ref.Namespace, role.Namespace)
		if inherited := o.role(namespace, ref.Name); inherited != nil {
			o.inherit(inherited, all, missing, seen)
		} else {
			missing[namespace+"/"+ref.Name] = true
		}
	}
}

// roleTuples give everybody who has the role its permissions.
func (o *Objects) roleTuples(role *iamv1alpha1.Role) []Tuple {
	var tuples []Tuple
	for _, permission := range o.Effective(role).All {
		if relation, known := o.Registry.Relation(permission); known {
			tuples = append(tuples, Tuple{UserType + ":*", relation, RoleObject(role)})
		}
	}
	return tuples
}
