package authz

import (
	"cmp"
	"maps"
	"slices"
)

// Holder is a principal who may do what a question is about.
type Holder struct {
	Principal Principal
	// Membership is the membership of the user in the group that holds the role.
	Membership Ref
	Why        Proof
}

// Compare orders principals.
func (p Principal) Compare(other Principal) int {
	return cmp.Or(cmp.Compare(p.Sort, other.Sort), p.Ref.Compare(other.Ref), cmp.Compare(p.UID, other.UID))
}

// Compare orders names.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name))
}

// Compare orders places.
func (p Scope) Compare(other Scope) int {
	if p.All != other.All && p.Type == other.Type {
		if p.All {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(p.Type, other.Type), p.Ref.Compare(other.Ref))
}

// WhoCan lists the principals who may do what a question is about, each once, groups and their members. more is true if
// there are more than most.
func (x *Index) WhoCan(q Query, most int) (holders []Holder, more bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	k, permission, ok := x.resolveQuestion(&q)
	if !ok {
		return nil, false
	}
	var r scopeSet
	x.collectScopes(&r, k, &q)
	found := map[Principal]Holder{}
	for at := range r.allScopes {
		for _, g := range at.grants {
			if g.contains(permission) && !x.addHolders(g, found, most) {
				more = true
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Holder) int { return a.Principal.Compare(b.Principal) }), more
}

// addHolders adds the holders of a grant. It returns false if they are too many.
func (x *Index) addHolders(g *grant, found map[Principal]Holder, most int) (all bool) {
	for _, b := range g.bindings {
		for _, p := range b.principals {
			why := Proof{b.Ref, g.role.Ref, p.Principal, g.at.Scope}
			if _, known := found[p.Principal]; known || !x.hasPrincipal(p.Principal) {
				continue // The members of a group were added with it. Any number of bindings may name the group.
			}
			if !canAddHolder(found, Holder{p.Principal, Ref{}, why}, most) {
				return false
			}
			if p.Sort == Group && !x.addMembers(p.Ref, why, found, most) {
				return false
			}
		}
	}
	return true
}

// addMembers adds the members of a group. It returns false if they are too many.
func (x *Index) addMembers(group Ref, why Proof, found map[Principal]Holder, most int) (all bool) {
	for _, ref := range slices.SortedFunc(maps.Keys(x.membershipsIn[group]), Ref.Compare) { // Sorted, so that a part of the list is the same each time.
		m := x.memberships[ref]
		if x.isCounted(m) && !canAddHolder(found, Holder{Principal{User, Ref{Name: m.user}, x.users[m.user].uid}, ref, why}, most) {
			return false
		}
	}
	return true
}

// canAddHolder adds a holder. It returns false if there are most already.
func canAddHolder(found map[Principal]Holder, h Holder, most int) bool {
	if _, known := found[h.Principal]; known {
		return true
	}
	if len(found) == most {
		return false
	}
	found[h.Principal] = h
	return true
}
