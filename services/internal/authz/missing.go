package authz

import (
	"cmp"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// Missing is a part of a change that would give rights that its author lacks, usually a permission of a role. A part
// that the index cannot resolve counts as missing, too:
//
//   - Permission can be one that is not registered.
//   - Role without Permission and At is a role that is not declared.
//   - At without Permission is an unregistered kind, or an owner that may not exist.
type Missing struct {
	Role       Ref
	Permission string
	At         Scope
	// Owners is set if there are more than [MostOwners] owners.
	Owners bool
}

// MissingToBind returns a permission that a binding in a namespace would give on its target and that the subject lacks.
func (x *Index) MissingToBind(s Subject, namespace string, b *iamv1alpha1.PolicyBindingSpec) (m Missing, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, uid, ok := placeOf(b.ResourceSelector)
	if !ok {
		return Missing{At: at}, true
	}
	return x.permissionsHeldBy(s).missingPermission(Ref{cmp.Or(b.RoleRef.Namespace, namespace), b.RoleRef.Name}, at, uid)
}

// MissingToJoin returns a permission that a group holds and that the subject lacks. Grants on objects that are known
// not to exist do not count. Grants on objects of a kind that is not observed, or not registered, do.
func (x *Index) MissingToJoin(s Subject, group Ref) (m Missing, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.principals[Principal{Group, group, x.groups[group]}]
	if p == nil {
		return m, false
	}
	mine := x.permissionsHeldBy(s)
	for g := range p.grants.allGrants() {
		if !g.at.isCounted(g.uid) && (g.at.target != nil || x.kinds[g.at.Type] != nil && x.observed[g.at.Type]) {
			continue
		}
		if m, lacks = mine.missingPermission(g.role.Ref, g.at.Scope, g.uid); lacks {
			return m, true
		}
	}
	return m, false
}

// MissingToInclude returns one of the permissions, or of the permissions of the roles, that the subject lacks on all
// objects. A role that includes them may later be bound to any object.
func (x *Index) MissingToInclude(s Subject, permissions []string, roles []Ref) (m Missing, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	mine := x.permissionsHeldBy(s)
	for _, name := range permissions {
		if n, known := x.permissions[name]; !known || !mine.everywhere.hasBit(n) {
			return Missing{Permission: name}, true
		}
	}
	for _, ref := range roles {
		r, m, lacks := x.permissionsGiven(ref, Scope{})
		if lacks {
			return m, true
		}
		if name, lacks := x.firstMissing(r.effective, r.effective, mine.everywhere); lacks {
			return Missing{Role: ref, Permission: name}, true
		}
	}
	return m, false
}

// MissingToOwn returns a permission that others hold on the new owners of an object, or above these, and that the
// subject lacks on the object.
func (x *Index) MissingToOwn(s Subject, object Scope, uid string, owners []iam.Owner) (m Missing, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	k := x.kinds[object.Type]
	if k == nil {
		return m, false
	}
	var above scopeSet // Shared by all owners, because they may have common ancestors.
	for _, owner := range owners {
		if k.parents[owner.Type] != nil && !x.reachOwner(&above, object, owner) {
			return Missing{At: Scope{Type: owner.Type, Ref: Ref{Name: owner.Name}}}, true
		}
	}
	if x.expandParents(&above); above.cut {
		return Missing{Owners: true}, true
	}
	has := x.permissionsHeldBy(s).permissionsOn(k, object, uid)
	for at := range above.allScopes {
		if owner, hidden := x.hiddenParent(at); hidden {
			return Missing{At: owner}, true
		}
		for _, g := range at.grants {
			if name, lacks := x.firstMissing(g.role.effective, k.held, has); lacks {
				return Missing{Role: g.role.Ref, Permission: name, At: object}, true
			}
		}
	}
	return m, false
}

// hiddenParent returns a parent that the object may have, but whose type is not observed.
func (x *Index) hiddenParent(at *scopeEntry) (above Scope, hiddenParent bool) {
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
	return within, within.Name != "" && k.parents[namespaceType] != nil && !x.observed[namespaceType] && !x.canExist(within)
}

// reachOwner adds the scopes on which a role counts for an owner, and reports whether the owner exists. An owner
// without a UID is identified by its name.
func (x *Index) reachOwner(r *scopeSet, object Scope, owner iam.Owner) (there bool) {
	for _, namespace := range [...]string{object.Namespace, ""} {
		above := Scope{Type: owner.Type, Ref: Ref{namespace, owner.Name}}
		if o, is := x.objectAt(above); is && (owner.UID == "" || owner.UID == o.UID) {
			there = true
			r.addParent(object, above)
		}
	}
	return there
}

// permissionsGiven returns a role if it and all roles that it inherits are declared, and all its permissions are
// registered.
func (x *Index) permissionsGiven(ref Ref, at Scope) (r *role, m Missing, lacks bool) {
	switch r = x.roles[ref]; {
	case r == nil || !r.declared:
		return nil, Missing{Role: ref}, true
	case r.absent != Ref{}:
		return nil, Missing{Role: r.absent}, true
	case r.unknown != "":
		return nil, Missing{Role: ref, Permission: r.unknown, At: at}, true
	}
	return r, m, false
}

// firstMissing returns the first permission that is in given and held, and not in has.
func (x *Index) firstMissing(given, held, has bits) (name string, lacks bool) {
	if !given.containsBeyond(held, has) {
		return "", false
	}
	return x.namesOf(given, held, has)[0], true
}
