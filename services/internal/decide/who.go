package decide

import (
	"cmp"
	"maps"
	"slices"
)

// Holder is somebody who may do what was asked about.
type Holder struct {
	Principal Principal
	// Membership is the one by which a user is in the group that has the role.
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
func (p Place) Compare(other Place) int {
	if p.All != other.All && p.Type == other.Type {
		if p.All {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(p.Type, other.Type), p.Ref.Compare(other.Ref))
}

// WhoCan lists who may do what a question asks about, whoever asks it: each once, groups and their
// members. It ends when it has found as many as wanted, and says so.
func (x *Index) WhoCan(q Question, most int) (holders []Holder, more bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	k, permission, ok := x.asked(&q)
	if !ok {
		return nil, false
	}
	var r reach
	x.reach(&r, k, &q)
	found := map[Principal]Holder{}
	for at := range r.all {
		for _, g := range at.grants {
			if g.gives(permission) && !x.holders(g, found, most) {
				more = true
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Holder) int { return a.Principal.Compare(b.Principal) }), more
}

// holders finds who has a grant, unless that is too many.
func (x *Index) holders(g *grant, found map[Principal]Holder, most int) (all bool) {
	for _, b := range g.bindings {
		for _, p := range b.principals {
			why := Proof{b.Ref, g.role.Ref, p.Principal, g.at.Place}
			if _, known := found[p.Principal]; known || !x.exists(p.Principal) {
				continue // Of a group its members are known, too: as many bindings may name it as somebody likes.
			}
			if !hold(found, Holder{p.Principal, Ref{}, why}, most) {
				return false
			}
			if p.Sort == Group && !x.members(p.Ref, why, found, most) {
				return false
			}
		}
	}
	return true
}

// members finds those of a group, unless that is too many.
func (x *Index) members(group Ref, why Proof, found map[Principal]Holder, most int) (all bool) {
	for _, ref := range slices.SortedFunc(maps.Keys(x.membershipsIn[group]), Ref.Compare) { // Pages of a part fit together.
		m := x.memberships[ref]
		if x.counts(m) && !hold(found, Holder{Principal{User, Ref{Name: m.user}, x.users[m.user].uid}, ref, why}, most) {
			return false
		}
	}
	return true
}

// hold adds a holder unless there are enough. What is found first is told.
func hold(found map[Principal]Holder, h Holder, most int) bool {
	if _, known := found[h.Principal]; known {
		return true
	}
	if len(found) == most {
		return false
	}
	found[h.Principal] = h
	return true
}
