package authz

import (
	"cmp"
	"iter"
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/bitset"
)

// HeldRole is a role that a subject holds on a scope.
type HeldRole struct {
	Proof Proof
	// Membership is the user's membership in the group that holds the role; empty if no group holds it.
	Membership Ref
	// PermissionCount counts the permissions that the role gives on the scope; see [Index.RolePermissionsOn].
	PermissionCount int
}

// ListHeldRoles lists the roles that a subject holds, sorted by scope and role.
func (x *Index) ListHeldRoles(s Subject) []HeldRole {
	rights := x.collectHeldRoles(s) // The list may be very long, so it is sorted without the lock.
	compare := func(a, b HeldRole) int {
		return cmp.Or(a.Proof.At.Compare(b.Proof.At), a.Proof.Role.Compare(b.Proof.Role), a.Proof.Principal.Compare(b.Proof.Principal))
	}
	slices.SortFunc(rights, compare)
	// Several bindings may give the same role; one of them is enough.
	return slices.CompactFunc(rights, func(a, b HeldRole) bool { return compare(a, b) == 0 })
}

func (x *Index) collectHeldRoles(s Subject) (roles []HeldRole) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	memberships := map[Ref]Ref{}
	for ref := range x.membershipsOf[s.User] {
		if m := x.memberships[ref]; x.isEffectiveMembership(m) {
			memberships[m.group] = ref
		}
	}
	for _, p := range x.principalsOfSubject(s) {
		var membership Ref
		if p.Kind == Group {
			membership = memberships[p.Ref]
		}
		for g, by := range p.grants.allGrants() {
			if k := x.kinds[g.at.Type]; k != nil && g.at.isEffectiveFor(g.uid) {
				if n := g.role.effective.CountCommon(k.grantable); n > 0 {
					roles = append(roles, HeldRole{Proof{by.Ref, g.role.Ref, p.Principal, g.at.Scope}, membership, n})
				}
			}
		}
	}
	return roles
}

// RolePermissionsOn lists the permissions that a role gives on a scope and below it, sorted.
func (x *Index) RolePermissionsOn(role Ref, at Scope) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r, k := x.roles[role], x.kinds[at.Type]
	if r == nil || k == nil {
		return nil
	}
	return x.permissionNames(r.effective, k.grantable, nil)
}

// PermissionGain lists the permissions that a binding would give to one of its subjects.
type PermissionGain struct {
	Subject iamv1alpha1.Subject
	// Absent is set if the subject does not exist or is inactive. It would gain the permissions when it becomes
	// active.
	Absent bool
	// Permissions lists the new permissions, without those that the subject already holds.
	Permissions []string
}

// BindingPreview is the effect of a binding that is not created yet.
type BindingPreview struct {
	// NoRole and NoTarget are set if the role or the target does not exist. In this case no subject gains anything
	// yet.
	NoRole, NoTarget bool
	Gains            []PermissionGain
	// More is set if the preview reached its limit and omits gains.
	More bool
}

// PreviewBinding returns the effect of a binding. For a group it returns the permissions that the group does not hold
// yet. All gains together have at most the given number of permissions.
func (x *Index) PreviewBinding(namespace string, b *iamv1alpha1.PolicyBinding, maxPermissions int) BindingPreview {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, uid, _ := scopeOfSelector(b.Spec.ResourceSelector)
	k, r := x.kinds[at.Type], x.roles[Ref{cmp.Or(b.Spec.RoleRef.Namespace, namespace), b.Spec.RoleRef.Name}]
	t, there := x.objectAt(at)
	preview := BindingPreview{
		NoRole:   r == nil || !r.declared,
		NoTarget: k == nil || !at.All && (!there || t.UID != uid) && (there || !x.mayExistUnindexed(at)),
	}
	var above scopeSet
	if k != nil {
		x.addScopeAndAncestors(&above, k, at, at.Namespace)
	}
	grants, had := above.effectiveGrants(), map[Principal]bitset.Set{}
	for _, s := range b.Spec.Subjects {
		id, ok := principalOf(s)
		gain := PermissionGain{Subject: s, Absent: !ok || !x.isActivePrincipal(id)}
		if !gain.Absent && !preview.NoRole && !preview.NoTarget {
			// Computed once: a binding may name a subject many times, and the subject may be in very many groups.
			if had[id] == nil {
				had[id] = x.permissionsFromGrants(id, grants)
			}
			gain.Permissions = x.permissionNames(r.effective, k.grantable, had[id])
		}
		if maxPermissions -= len(gain.Permissions); maxPermissions < 0 {
			preview.More = true
			break
		}
		preview.Gains = append(preview.Gains, gain)
	}
	return preview
}

// permissionsFromGrants returns the permissions that a principal already holds by the given grants.
func (x *Index) permissionsFromGrants(id Principal, grants map[*grant]struct{}) bitset.Set {
	who := x.appendActivePrincipal(nil, id)
	if id.Kind == User {
		who = x.principalsOfSubject(Subject{User: id.Name})
	}
	all := x.permissionSetOf(nil)
	for _, p := range who {
		for g := range p.grantsAmong(grants) {
			all.AddAll(g.role.effective)
		}
	}
	return all
}

// effectiveGrants returns the grants that take effect on the scopes.
func (r *scopeSet) effectiveGrants() map[*grant]struct{} {
	all := map[*grant]struct{}{}
	for at := range r.allScopes {
		for _, g := range at.grants {
			all[g] = struct{}{}
		}
	}
	return all
}

// grantsAmong yields the grants in grants that a principal holds. It iterates over the smaller of the two sets.
func (p *principal) grantsAmong(grants map[*grant]struct{}) iter.Seq[*grant] {
	return func(yield func(*grant) bool) {
		if p.grants.grantCountBound() <= len(grants) {
			for g := range p.grants.allGrants() {
				if _, ok := grants[g]; ok && !yield(g) {
					return
				}
			}
			return
		}
		for g := range grants {
			if p.grants.bindingOfGrant(g) != nil && !yield(g) {
				return
			}
		}
	}
}
