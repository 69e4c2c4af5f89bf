package authz

import (
	"cmp"
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// grant is a role on a [Scope]. Several bindings can give the same grant.
type grant struct {
	role *role
	at   *scopeEntry
	// uid is the UID that the object of the scope must have.
	uid      string
	bindings []*binding
	// groups holds the groups that have the grant.
	groups map[*principal]struct{}
}

// binding is a declared PolicyBinding.
type binding struct {
	Ref

	// uid is the UID of the PolicyBinding.
	uid   string
	grant *grant
	// index is the position in grant.bindings.
	index      int
	principals []*principal
}

// SetBinding adds or replaces a PolicyBinding. It removes the binding if declared is nil or in deletion.
func (x *Index) SetBinding(namespace, name string, declared *iamv1alpha1.PolicyBinding) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ref := Ref{namespace, name}
	if was := x.bindings[ref]; was != nil {
		x.removeBinding(was)
	}
	if !isAlive(declared) {
		return
	}
	if at, uid, ok := scopeOfSelector(declared.Spec.ResourceSelector); ok {
		r := x.ensureRole(Ref{cmp.Or(declared.Spec.RoleRef.Namespace, namespace), declared.Spec.RoleRef.Name})
		x.addBinding(&binding{Ref: ref, uid: string(declared.UID), grant: x.ensureGrant(r, x.ensureScopeEntry(at), uid)}, declared.Spec.Subjects)
	}
}

func (x *Index) addBinding(b *binding, subjects []iamv1alpha1.Subject) {
	x.bindings[b.Ref] = b
	b.index, b.grant.bindings = len(b.grant.bindings), append(b.grant.bindings, b)
	for _, id := range principalsOf(subjects) {
		p := x.principals[id]
		if p == nil {
			p = &principal{Principal: id}
			x.principals[id] = p
		}
		if p.Kind == Group {
			b.grant.addGroup(p)
		}
		b.principals = append(b.principals, p)
		p.grants.addBinding(b)
	}
}

// removeBinding removes a binding, and each grant, principal, role and scope entry that only this binding uses.
func (x *Index) removeBinding(b *binding) {
	g := b.grant
	delete(x.bindings, b.Ref)
	last := g.bindings[len(g.bindings)-1]
	g.bindings[b.index], last.index = last, b.index
	g.bindings = slices.Delete(g.bindings, len(g.bindings)-1, len(g.bindings))
	for _, p := range b.principals {
		if p.grants.removeBinding(b); p.grants.bindingOfGrant(g) == nil {
			delete(g.groups, p)
		}
		if p.grants.grantCountBound() == 0 {
			delete(x.principals, p.Principal)
		}
	}
	if len(g.bindings) == 0 {
		g.role.grants--
		g.at.setGrantsForUID(g.uid, slices.DeleteFunc(g.at.grantsForUID(g.uid), func(other *grant) bool { return other == g }))
		x.removeUnusedRole(g.role)
		x.removeUnusedScopeEntry(g.at)
	}
}

func (x *Index) ensureGrant(r *role, at *scopeEntry, uid string) *grant {
	for _, g := range at.grantsForUID(uid) {
		if g.role == r && g.uid == uid {
			return g
		}
	}
	g := &grant{role: r, at: at, uid: uid}
	r.grants++
	at.setGrantsForUID(uid, append(at.grantsForUID(uid), g))
	return g
}

func (g *grant) addGroup(p *principal) {
	if g.groups == nil {
		g.groups = map[*principal]struct{}{}
	}
	g.groups[p] = struct{}{}
}

func (g *grant) hasPermission(permission int) bool { return g.role.effective.Has(permission) }

// IsBindingUpToDate reports whether the index holds the spec, the UID and the owners of a binding as declared.
func (x *Index) IsBindingUpToDate(declared *iamv1alpha1.PolicyBinding) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ref, lives := Ref{declared.Namespace, declared.Name}, isAlive(declared)
	if !x.isUpToDate(bindingType, &declared.ObjectMeta) {
		return false
	}
	b, s := x.bindings[ref], declared.Spec
	at, uid, ok := scopeOfSelector(s.ResourceSelector)
	if !lives || !ok || b == nil {
		return (lives && ok) == (b != nil)
	}
	return b.grant.at.Scope == at && b.grant.uid == uid && b.grant.role.Ref == Ref{cmp.Or(s.RoleRef.Namespace, ref.Namespace), s.RoleRef.Name} &&
		slices.EqualFunc(b.principals, principalsOf(s.Subjects), func(p *principal, id Principal) bool { return p.Principal == id })
}
