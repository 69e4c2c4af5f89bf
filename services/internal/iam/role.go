package iam

import (
	"cmp"
	"slices"
	"sync"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/truncate"
)

// mostIdle bounds the number of names without effect that are kept, and maxIdle the bytes of each. Without these
// bounds, a namespace owner could list any number of unknown permissions and roles.
const (
	mostIdle = 100
	maxIdle  = 256
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
func (o *Lookup) EffectivePermissions(role *iamv1alpha1.Role) RolePermissions {
	given := cmp.Or(o.Inheritance, new(InheritanceCache)).cachedPermissionsOf(o, role)
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
	found    map[string]*inherited
}

// inherited holds the permissions that all roles of one inheritance cycle share.
type inherited struct{ permissions, missing []string }

// cachedPermissionsOf returns the permissions of a role and computes them if they are not cached.
func (i *InheritanceCache) cachedPermissionsOf(o *Lookup, role *iamv1alpha1.Role) *inherited {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.found == nil || i.registry != o.Registry {
		i.registry, i.found = o.Registry, map[string]*inherited{}
	}
	name := roleName(role)
	if i.found[name] == nil {
		w := inheritanceWalk{objects: o, found: i.found, at: map[string]int{}}
		w.visitRole(name, role)
	}
	return i.found[name]
}

func roleName(role *iamv1alpha1.Role) string { return role.Namespace + "/" + role.Name }

// inheritanceWalk visits the roles that a role inherits, and finds inheritance cycles (Tarjan's algorithm).
type inheritanceWalk struct {
	objects *Lookup
	// found holds the results of roles that are not on the path.
	found map[string]*inherited
	// at holds the position of a role on the path, counted from one.
	at   map[string]int
	path []*pathRole
}

// pathRole is a role on the path, with the permissions collected so far.
type pathRole struct {
	name string
	inherited

	seen map[*inherited]bool
}

// visitRole collects the permissions of a role. It returns the first position on the path that is in a cycle with the
// role. Without a cycle this is the role's own position.
func (w *inheritanceWalk) visitRole(name string, role *iamv1alpha1.Role) (first int) {
	s := &pathRole{name: name, seen: map[*inherited]bool{}}
	for _, permission := range role.Spec.IncludedPermissions {
		s.permissions = append(s.permissions, w.objects.truncatePermission(permission))
	}
	w.path = append(w.path, s)
	own := len(w.path)
	w.at[name], first = own, own
	for _, ref := range role.Spec.InheritedRoles {
		namespace := cmp.Or(ref.Namespace, role.Namespace)
		other := namespace + "/" + ref.Name
		switch r := w.objects.liveRole(namespace, ref.Name); {
		case r == nil:
			s.missing = append(s.missing, truncate.Text(other, maxIdle))
			continue
		case w.at[other] > 0:
			first = min(first, w.at[other])
		case w.found[other] == nil:
			first = min(first, w.visitRole(other, r))
		}
		s.addInherited(w.found[other])
	}
	if first == own {
		w.closeCycle(w.path[own-1:])
		w.path = w.path[:own-1]
	}
	return first
}

// addInherited adds the result of an inherited role. The result is nil for a role on the path;
// [inheritanceWalk.closeCycle] merges such roles later.
func (s *pathRole) addInherited(is *inherited) {
	if is != nil && !s.seen[is] {
		s.seen[is] = true
		s.permissions, s.missing = append(s.permissions, is.permissions...), append(s.missing, is.missing...)
	}
}

// closeCycle stores one common result for the roles of an inheritance cycle.
func (w *inheritanceWalk) closeCycle(roles []*pathRole) {
	all := &inherited{}
	for _, s := range roles {
		all.permissions, all.missing = append(all.permissions, s.permissions...), append(all.missing, s.missing...)
		w.found[s.name] = all
		delete(w.at, s.name)
	}
	all.permissions, all.missing = w.objects.limitUnregistered(distinctNames(all.permissions)), distinctNames(all.missing)
	all.missing = slices.Clone(all.missing[:min(mostIdle, len(all.missing))])
}

// truncatePermission shortens a long permission that is not registered.
func (o *Lookup) truncatePermission(permission string) string {
	if len(permission) > maxIdle {
		if _, known := o.Registry.RelationOf(permission); !known {
			return truncate.Text(permission, maxIdle)
		}
	}
	return permission
}

// limitUnregistered removes unregistered permissions after the first mostIdle.
func (o *Lookup) limitUnregistered(permissions []string) []string {
	idle := 0
	return slices.Clone(slices.DeleteFunc(permissions, func(permission string) bool {
		_, known := o.Registry.RelationOf(permission)
		if !known {
			idle++
		}
		return !known && idle > mostIdle
	}))
}

func distinctNames(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// roleTuples returns one tuple for each registered permission of the role. The tuple gives the permission to every
// user who holds the role.
func (o *Lookup) roleTuples(role *iamv1alpha1.Role) []Tuple {
	var tuples []Tuple
	for _, permission := range o.EffectivePermissions(role).All {
		if relation, known := o.Registry.RelationOf(permission); known {
			tuples = append(tuples, Tuple{UserType + ":*", relation, RoleObject(role)})
		}
	}
	return tuples
}
