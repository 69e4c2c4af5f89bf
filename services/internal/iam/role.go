package iam

import (
	"cmp"
	"slices"
	"sync"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/components"
	"github.com/entail-dev/entail/services/internal/truncate"
)

// maxUnknownNames bounds the number of names without effect that are kept, and maxUnknownNameBytes the bytes of each.
// Without these bounds, a namespace owner could list any number of unknown permissions and roles.
const (
	maxUnknownNames     = 100
	maxUnknownNameBytes = 256
)

// RolePermissions holds the permissions of a role. Names without effect are kept up to a limit.
type RolePermissions struct {
	// All lists the role's own and inherited permissions, sorted.
	All []string
	// Unknown lists the permissions in All that no ProtectedResource registers. They have no effect.
	Unknown []string
	// Missing lists inherited roles that do not exist, as namespace/name.
	Missing []string
}

// EffectivePermissions returns the permissions that a role gives, including those of inherited roles. Inheritance may
// be cyclic.
func (o *DeclaredObjects) EffectivePermissions(role *iamv1alpha1.Role) RolePermissions {
	given := cmp.Or(o.Inheritance, new(InheritanceCache)).permissionsOf(o, role)
	p := RolePermissions{All: given.permissions, Missing: given.missing}
	for _, permission := range p.All {
		if _, known := o.Registry.RelationOf(permission); !known {
			p.Unknown = append(p.Unknown, permission)
		}
	}
	return p
}

// InheritanceCache caches the permissions of roles. It is valid until a role changes. Each role is visited once,
// because the number of inheritance paths can be exponential. The zero value is empty.
type InheritanceCache struct {
	mu sync.Mutex
	// registry is the registry for which found is valid.
	registry *Registry
	found    map[string]*inheritedPermissions
}

// inheritedPermissions holds the permissions that all roles of one inheritance cycle share.
type inheritedPermissions struct{ permissions, missing []string }

// permissionsOf returns the permissions of a role and computes them if they are not cached.
func (i *InheritanceCache) permissionsOf(o *DeclaredObjects, role *iamv1alpha1.Role) *inheritedPermissions {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.found == nil || i.registry != o.Registry {
		i.registry, i.found = o.Registry, map[string]*inheritedPermissions{}
	}
	name := roleName(role)
	if i.found[name] == nil {
		i.computeInherited(o, name, role)
	}
	return i.found[name]
}

func roleName(role *iamv1alpha1.Role) string { return role.Namespace + "/" + role.Name }

// computeInherited computes the permissions of a role, and of all roles that it inherits. It computes a cycle after the
// roles that the cycle inherits.
func (i *InheritanceCache) computeInherited(o *DeclaredObjects, name string, role *iamv1alpha1.Role) {
	roles := map[string]*iamv1alpha1.Role{name: role}
	cycles := components.NewStronglyConnectedFinder(func(name string) (next []string) {
		for _, ref := range roles[name].Spec.InheritedRoles {
			other, r := o.inheritedRole(roles[name], ref)
			if r == nil || i.found[other] != nil {
				continue
			}
			if roles[other] == nil {
				roles[other] = r
			}
			next = append(next, other)
		}
		return next
	})
	for _, cycle := range cycles.CollectNewFrom(name) {
		all := i.mergeCycle(o, cycle, roles)
		for _, name := range cycle {
			i.found[name] = all
		}
	}
}

// mergeCycle returns the common result of the roles of an inheritance cycle.
func (i *InheritanceCache) mergeCycle(o *DeclaredObjects, cycle []string, roles map[string]*iamv1alpha1.Role) *inheritedPermissions {
	all := &inheritedPermissions{}
	seen := map[*inheritedPermissions]bool{nil: true} // The roles of the cycle itself have no result yet.
	for _, name := range cycle {
		for _, permission := range roles[name].Spec.IncludedPermissions {
			all.permissions = append(all.permissions, o.truncatePermission(permission))
		}
		for _, ref := range roles[name].Spec.InheritedRoles {
			other, r := o.inheritedRole(roles[name], ref)
			if r == nil {
				all.missing = append(all.missing, truncate.Text(other, maxUnknownNameBytes))
			} else if is := i.found[other]; !seen[is] {
				seen[is] = true
				all.permissions, all.missing = append(all.permissions, is.permissions...), append(all.missing, is.missing...)
			}
		}
	}
	all.permissions, all.missing = o.limitUnregistered(distinctNames(all.permissions)), distinctNames(all.missing)
	all.missing = slices.Clone(all.missing[:min(maxUnknownNames, len(all.missing))])
	return all
}

// inheritedRole returns the name of an inherited role, and the role if it exists.
func (o *DeclaredObjects) inheritedRole(role *iamv1alpha1.Role, ref iamv1alpha1.ScopedRoleReference) (name string, r *iamv1alpha1.Role) {
	namespace := cmp.Or(ref.Namespace, role.Namespace)
	return namespace + "/" + ref.Name, o.liveRole(namespace, ref.Name)
}

// truncatePermission shortens a long permission that is not registered.
func (o *DeclaredObjects) truncatePermission(permission string) string {
	if len(permission) > maxUnknownNameBytes {
		if _, known := o.Registry.RelationOf(permission); !known {
			return truncate.Text(permission, maxUnknownNameBytes)
		}
	}
	return permission
}

// limitUnregistered removes unregistered permissions after the first maxUnknownNames.
func (o *DeclaredObjects) limitUnregistered(permissions []string) []string {
	idle := 0
	return slices.Clone(slices.DeleteFunc(permissions, func(permission string) bool {
		_, known := o.Registry.RelationOf(permission)
		if !known {
			idle++
		}
		return !known && idle > maxUnknownNames
	}))
}

func distinctNames(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// roleTuples returns one tuple for each registered permission of the role. The tuple gives the permission to every
// user who holds the role.
func (o *DeclaredObjects) roleTuples(role *iamv1alpha1.Role) []Tuple {
	var tuples []Tuple
	for _, permission := range o.EffectivePermissions(role).All {
		if relation, known := o.Registry.RelationOf(permission); known {
			tuples = append(tuples, Tuple{UserType + ":*", relation, RoleObject(role)})
		}
	}
	return tuples
}
