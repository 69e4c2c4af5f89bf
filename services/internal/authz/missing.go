package authz

import (
	"cmp"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/bitset"
	"github.com/entail-dev/entail/services/internal/iam"
)

// MissingRight is a right that a change would give and that its author lacks, usually a permission of a role. A part
// of the change that the index cannot resolve also counts as missing:
//   - Permission can be an unregistered permission.
//   - Role without Permission and At is a role that is not declared.
//   - At without Permission is an unregistered kind, or an owner that may not exist.
type MissingRight struct {
	Role       Ref
	Permission string
	At         Scope
	// Owners is set if there are more than [MaxOwners] owners.
	Owners bool
}

// MissingToBind returns a permission that a binding in a namespace would give on its target and that the subject
// lacks.
func (x *Index) MissingToBind(s Subject, namespace string, b *iamv1alpha1.PolicyBindingSpec) (m MissingRight, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, uid, ok := scopeOfSelector(b.ResourceSelector)
	if !ok {
		return MissingRight{At: at}, true
	}
	return x.newHeldPermissions(s).missingRightOfRole(Ref{cmp.Or(b.RoleRef.Namespace, namespace), b.RoleRef.Name}, at, uid)
}

// MissingToJoin returns a permission that a group holds and that the subject lacks. It ignores grants on objects that
// are known not to exist. It includes grants on kinds that are not observed or not registered, because their objects
// may exist.
func (x *Index) MissingToJoin(s Subject, group Ref) (m MissingRight, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.principals[Principal{Group, group, x.groups[group]}]
	if p == nil {
		return m, false
	}
	mine := x.newHeldPermissions(s)
	for g := range p.grants.allGrants() {
		if !g.at.isEffectiveFor(g.uid) && (g.at.target != nil || x.kinds[g.at.Type] != nil && x.observed[g.at.Type]) {
			continue
		}
		if m, lacks = mine.missingRightOfRole(g.role.Ref, g.at.Scope, g.uid); lacks {
			return m, true
		}
	}
	return m, false
}

// MissingToInclude returns a permission that the subject lacks but needs to add the permissions and roles to a role.
// The subject must have each permission on all objects, because the role may later be bound to any object.
func (x *Index) MissingToInclude(s Subject, permissions []string, roles []Ref) (m MissingRight, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	mine := x.newHeldPermissions(s)
	for _, name := range permissions {
		if n, known := x.permissions[name]; !known || !mine.everywhere.Has(n) {
			return MissingRight{Permission: name}, true
		}
	}
	for _, ref := range roles {
		r, m, lacks := x.findResolvedRole(ref, Scope{})
		if lacks {
			return m, true
		}
		if name, lacks := x.firstMissingPermission(r.effective, r.effective, mine.everywhere); lacks {
			return MissingRight{Role: ref, Permission: name}, true
		}
	}
	return m, false
}

// MissingToSetOwners returns a permission that the subject lacks on an object and that the new owners would give to
// other subjects. These subjects hold the permission on an owner or on an ancestor of an owner.
func (x *Index) MissingToSetOwners(s Subject, object Scope, uid string, owners []iam.Owner) (m MissingRight, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	k := x.kinds[object.Type]
	if k == nil {
		return m, false
	}
	var above scopeSet // The owners share this set, because they may have common ancestors.
	for _, owner := range owners {
		if k.parents[owner.Type] != nil && !x.queueOwnerScopes(&above, object, owner) {
			return MissingRight{At: Scope{Type: owner.Type, Ref: Ref{Name: owner.Name}}}, true
		}
	}
	if x.expandParents(&above); above.cut {
		return MissingRight{Owners: true}, true
	}
	has := x.newHeldPermissions(s).permissionsOn(k, object, uid)
	for at := range above.allScopes {
		if owner, hidden := x.unobservedParent(at); hidden {
			return MissingRight{At: owner}, true
		}
		for _, g := range at.grants {
			if name, lacks := x.firstMissingPermission(g.role.effective, k.grantable, has); lacks {
				return MissingRight{Role: g.role.Ref, Permission: name, At: object}, true
			}
		}
	}
	return m, false
}

// unobservedParent returns a possible parent of the object whose type is not observed.
func (x *Index) unobservedParent(at *scopeEntry) (above Scope, found bool) {
	k := x.kinds[at.Type]
	if k == nil || at.target == nil {
		return above, false
	}
	for _, owner := range at.target.Owners {
		if k.parents[owner.Type] != nil && !x.observed[owner.Type] {
			return Scope{Type: owner.Type, Ref: Ref{Name: owner.Name}}, true
		}
	}
	within := Scope{Type: namespaceType, Ref: Ref{Name: at.target.Namespace}}
	return within, within.Name != "" && k.parents[namespaceType] != nil && !x.observed[namespaceType] && !x.mayExistUnindexed(within)
}

// queueOwnerScopes queues an owner of the object, and reports whether the owner exists. An owner without a UID is
// identified by its name.
func (x *Index) queueOwnerScopes(r *scopeSet, object Scope, owner iam.Owner) (there bool) {
	for _, namespace := range [...]string{object.Namespace, ""} {
		above := Scope{Type: owner.Type, Ref: Ref{namespace, owner.Name}}
		if o, is := x.objectAt(above); is && (owner.UID == "" || owner.UID == o.UID) {
			there = true
			r.queueParent(object, above)
		}
	}
	return there
}

// findResolvedRole returns a role if the role and all roles that it inherits are declared and all its permissions
// are registered. Otherwise it returns what is missing.
func (x *Index) findResolvedRole(ref Ref, at Scope) (r *role, m MissingRight, lacks bool) {
	switch r = x.roles[ref]; {
	case r == nil || !r.declared:
		return nil, MissingRight{Role: ref}, true
	case r.absent != Ref{}:
		return nil, MissingRight{Role: r.absent}, true
	case r.unknown != "":
		return nil, MissingRight{Role: ref, Permission: r.unknown, At: at}, true
	}
	return r, m, false
}

// firstMissingPermission returns the first permission that is in given and held, and not in has.
func (x *Index) firstMissingPermission(given, grantable, held bitset.Set) (name string, lacks bool) {
	if !given.ContainsAnyExcept(grantable, held) {
		return "", false
	}
	return x.permissionNames(given, grantable, held)[0], true
}
