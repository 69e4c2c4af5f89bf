package authz

import "github.com/entail-dev/entail/services/internal/bitset"

// heldPermissions computes the permissions of a subject. It computes each grant and each scope once, because users can
// create many of both.
type heldPermissions struct {
	x      *Index
	grants map[*grant]struct{}
	// everywhere holds the permissions on all objects of their kinds.
	everywhere bitset.Set
	// at caches the permissions on each scope.
	at map[Scope]bitset.Set
}

// newHeldPermissions returns the grants of a subject, and its permissions on whole kinds.
func (x *Index) newHeldPermissions(s Subject) *heldPermissions {
	h := &heldPermissions{x: x, grants: map[*grant]struct{}{}, everywhere: x.permissionSetOf(nil), at: map[Scope]bitset.Set{}}
	for _, p := range x.principalsOfSubject(s) {
		for g := range p.grants.allGrants() {
			h.grants[g] = struct{}{}
		}
	}
	for typ := range x.kinds {
		all := x.permissionSetOf(nil)
		if p := x.places[Scope{Type: typ, All: true}]; p != nil {
			h.addPermissionsOn(all, p)
		}
		for n, owner := range x.owners {
			if owner == typ && all.Has(n) {
				h.everywhere.Add(n)
			}
		}
	}
	return h
}

// addPermissionsOn adds the permissions of the subject's grants on a scope.
func (h *heldPermissions) addPermissionsOn(all bitset.Set, p *scopeEntry) {
	for _, g := range p.grants {
		if _, mine := h.grants[g]; mine {
			all.AddAll(g.role.effective)
		}
	}
}

// permissionsOn returns the permissions on the object with a UID, or on a whole kind. If another object has the name,
// only permissions on the whole kind count.
func (h *heldPermissions) permissionsOn(k *registeredKind, at Scope, uid string) bitset.Set {
	if t, there := h.x.objectAt(at); at.All || there && t.UID != uid {
		at = Scope{Type: at.Type, Ref: Ref{Namespace: at.Namespace}}
	}
	if has, known := h.at[at]; known {
		return has
	}
	has := h.x.permissionSetOf(nil)
	has.AddAll(h.everywhere)
	var r scopeSet
	h.x.addScopeAndAncestors(&r, k, at, at.Namespace)
	for p := range r.allScopes {
		h.addPermissionsOn(has, p)
	}
	h.at[at] = has
	return has
}

// missingRightOfRole returns a permission that a role gives on an object, or on a whole kind, and that the subject
// lacks. A MissingRight without Permission means that the role or the kind is unknown.
func (h *heldPermissions) missingRightOfRole(ref Ref, at Scope, uid string) (m MissingRight, lacks bool) {
	r, m, lacks := h.x.findResolvedRole(ref, at)
	if lacks {
		return m, true
	}
	k := h.x.kinds[at.Type]
	if k == nil {
		return MissingRight{Role: ref, At: at}, true
	}
	name, lacks := h.x.firstMissingPermission(r.effective, k.grantable, h.permissionsOn(k, at, uid))
	return MissingRight{Role: ref, Permission: name, At: at}, lacks
}
