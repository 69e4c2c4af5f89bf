package authz

import (
	"cmp"
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/bitset"
)

// role is a role that is declared, bound, or inherited.
type role struct {
	Ref

	declared bool
	included []string
	inherits []*role
	heirs    map[*role]struct{}
	// effective holds its permissions, inherited ones included.
	effective bitset.Set
	// unknown is one of these permissions that is not registered, or empty. absent is an inherited role that is not
	// declared.
	unknown string
	absent  Ref
	// grants counts the grants of the role.
	grants int
	// step is the role's position on the path of an [inheritanceClosure], starting at one. It is unvisited before the
	// visit and zero once the permissions are computed.
	step int
}

// SetRole adds, replaces or removes a Role.
func (x *Index) SetRole(namespace, name string, declared *iamv1alpha1.Role) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.ensureRole(Ref{namespace, name})
	if r.matchesDeclared(declared) {
		x.removeUnusedRole(r)
		return
	}
	before := r.inherits
	for _, inherited := range before {
		delete(inherited.heirs, r)
	}
	r.declared, r.included, r.inherits = isAlive(declared), nil, nil
	if r.declared {
		r.included = declared.Spec.IncludedPermissions
		for _, ref := range declared.Spec.InheritedRoles {
			inherited := x.ensureRole(Ref{cmp.Or(ref.Namespace, namespace), ref.Name})
			r.inherits = append(r.inherits, inherited)
			inherited.heirs[r] = struct{}{}
		}
	}
	x.computeRolePermissions([]*role{r})
	for _, inherited := range before {
		x.removeUnusedRole(inherited)
	}
	x.removeUnusedRole(r)
}

// matchesDeclared reports whether r already equals a declared role. This is the usual case, because every status
// update of a role calls [Index.SetRole] again.
func (r *role) matchesDeclared(declared *iamv1alpha1.Role) bool {
	if !r.declared || !isAlive(declared) {
		return r.declared == isAlive(declared)
	}
	return slices.Equal(r.included, declared.Spec.IncludedPermissions) &&
		slices.EqualFunc(r.inherits, declared.Spec.InheritedRoles, func(inherited *role, ref iamv1alpha1.ScopedRoleReference) bool {
			return inherited.Ref == Ref{cmp.Or(ref.Namespace, r.Namespace), ref.Name}
		})
}

func (x *Index) ensureRole(ref Ref) *role {
	r := x.roles[ref]
	if r == nil {
		r = &role{Ref: ref, heirs: map[*role]struct{}{}}
		x.roles[ref] = r
	}
	return r
}

func (x *Index) removeUnusedRole(r *role) {
	if !r.declared && r.grants+len(r.heirs) == 0 {
		delete(x.roles, r.Ref)
	}
}

// computeRolePermissions computes the permissions of changed roles, and of all roles that inherit them.
func (x *Index) computeRolePermissions(changed []*role) {
	if x.loading {
		return
	}
	affected := slices.Clone(changed)
	for _, r := range changed {
		r.step = unvisited
	}
	for i := 0; i < len(affected); i++ {
		for heir := range affected[i].heirs {
			if heir.step == 0 {
				heir.step = unvisited
				affected = append(affected, heir)
			}
		}
	}
	c := inheritanceClosure{x: x}
	for _, r := range affected {
		if r.step == unvisited {
			c.visitRole(r)
		}
	}
}

// inheritanceClosure computes the permissions of roles. It visits each role once, even in cycles (Tarjan's algorithm).
// All roles of a cycle have the same permissions.
type inheritanceClosure struct {
	x    *Index
	path []*role
}

const unvisited = -1

// visitRole computes the permissions of a role. If the role is in a cycle with roles on the path, it returns the
// position of the first of these roles.
func (c *inheritanceClosure) visitRole(r *role) (first int) {
	c.path = append(c.path, r)
	own := len(c.path)
	r.step, first = own, own
	r.effective, r.unknown, r.absent = c.x.permissionSetOf(r.included), c.x.unregisteredPermission(r.included), Ref{}
	for _, inherited := range r.inherits {
		if !inherited.declared {
			r.absent = inherited.Ref
			continue
		}
		if step := inherited.step; step == unvisited {
			first = min(first, c.visitRole(inherited))
		} else if step > 0 {
			first = min(first, step)
		}
		r.addInheritedPermissions(inherited)
	}
	if first < own {
		return first
	}
	for _, one := range c.path[own-1:] { // The first role of a cycle now has the permissions of the whole cycle.
		one.effective, one.unknown, one.absent, one.step = r.effective, r.unknown, r.absent, 0
	}
	c.path = c.path[:own-1]
	return first
}

// addInheritedPermissions adds the permissions of an inherited role.
func (r *role) addInheritedPermissions(inherited *role) {
	r.effective.AddAll(inherited.effective)
	r.unknown, r.absent = cmp.Or(r.unknown, inherited.unknown), cmp.Or(r.absent, inherited.absent)
}

// unregisteredPermission returns one of the permissions that is not registered, or "".
func (x *Index) unregisteredPermission(permissions []string) string {
	for _, name := range permissions {
		if _, known := x.permissions[name]; !known {
			return name
		}
	}
	return ""
}
