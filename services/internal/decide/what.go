package decide

import (
	"cmp"
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// Right is a role that somebody has at a place, and what it gives there and below.
type Right struct {
	Why Proof
	// Membership is the one by which a user is in the group that has the role.
	Membership  Ref
	Permissions []string
}

// WhatCan lists what somebody may do, role by role, in order of the places.
func (x *Index) WhatCan(s Subject) []Right {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var rights []Right
	for _, p := range x.are(s, nil) {
		for g, bindings := range p.grants {
			k := x.kinds[g.at.Type]
			if k == nil || !g.counts() {
				continue
			}
			if permissions := x.namesOf(g.role.effective, k.held, nil); len(permissions) > 0 {
				why := Proof{bindings[0].Ref, g.role.Ref, p.Principal, g.at.Place}
				rights = append(rights, Right{why, x.membership(s.User, p.Principal), permissions})
			}
		}
	}
	slices.SortFunc(rights, func(a, b Right) int {
		return cmp.Or(a.Why.At.Compare(b.Why.At), a.Why.Role.Compare(b.Why.Role), a.Why.Principal.Compare(b.Why.Principal))
	})
	return rights
}

// Gain is what a binding would give to one of its subjects.
type Gain struct {
	Subject iamv1alpha1.Subject
	// Absent says that the subject is not there, or may not act: it would gain when that changes.
	Absent bool
	// Permissions are those that the subject does not have yet.
	Permissions []string
}

// Preview is what a binding would do.
type Preview struct {
	// NoRole and NoTarget say that these are not there: nobody would gain anything for now.
	NoRole, NoTarget bool
	Gains            []Gain
}

// Preview says what a binding would do. Members of a group gain what the group does, but for what they have.
func (x *Index) Preview(namespace string, b *iamv1alpha1.PolicyBinding) Preview {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, uid, _ := placeOf(b.Spec.ResourceSelector)
	k, r, p := x.kinds[at.Type], x.roles[Ref{cmp.Or(b.Spec.RoleRef.Namespace, namespace), b.Spec.RoleRef.Name}], x.places[at]
	preview := Preview{
		NoRole:   r == nil || !r.declared,
		NoTarget: k == nil || !at.All && !p.isThere(uid) && (p != nil && p.target != nil || !x.trusts(at)),
	}
	var above reach
	if k != nil {
		x.walk(&above, k, at, at.Namespace)
	}
	for _, s := range b.Spec.Subjects {
		id, ok := principalOf(s)
		gain := Gain{Subject: s, Absent: !ok || !x.exists(id)}
		if !gain.Absent && !preview.NoRole && !preview.NoTarget {
			gain.Permissions = x.namesOf(r.effective, k.held, x.had(id, &above))
		}
		preview.Gains = append(preview.Gains, gain)
	}
	return preview
}

// had are the permissions that a principal has at some places already.
func (x *Index) had(id Principal, above *reach) bits {
	who := x.appendPrincipal(nil, id)
	if id.Sort == User {
		who = x.are(Subject{User: id.Name}, nil)
	}
	all := x.bitsOf(nil)
	for at := range above.all {
		for _, g := range at.grants {
			if g.counts() && slices.ContainsFunc(who, func(p *principal) bool { return len(p.grants[g]) > 0 }) {
				all.add(g.role.effective)
			}
		}
	}
	return all
}
