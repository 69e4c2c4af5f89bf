package decide

import (
	"cmp"
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// Missing is what somebody does not have that something would give. What nobody can have yet counts, too: a role without
// a permission here is not declared, where a place stands beside a role without one, nobody registers its kind, and a place alone is
// an owner that is not there.
type Missing struct {
	Role       Ref
	Permission string
	At         Place
}

// MissingToBind is what somebody lacks of what a binding in a namespace would give on its target.
func (x *Index) MissingToBind(s Subject, namespace string, b *iamv1alpha1.PolicyBindingSpec) (m Missing, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, uid, ok := placeOf(b.ResourceSelector)
	if !ok {
		return Missing{At: at}, true
	}
	return x.missing(x.are(s), Ref{cmp.Or(b.RoleRef.Namespace, namespace), b.RoleRef.Name}, at, uid)
}

// MissingToJoin is what somebody lacks of what a group has. What is bound to it on objects that are not there it never gets.
func (x *Index) MissingToJoin(s Subject, group Ref) (m Missing, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.principals[Principal{Group, group, x.groups[group]}]
	if p == nil {
		return m, false
	}
	who := x.are(s)
	for g := range p.grants.all() {
		if !g.at.counts(g.uid) {
			continue
		}
		if m, lacks = x.missing(who, g.role.Ref, g.at.Place, g.uid); lacks {
			return m, true
		}
	}
	return m, false
}

// MissingToInclude is what somebody lacks, anywhere, of permissions and of what roles give: a role that gets these may be
// bound anywhere, at any time.
func (x *Index) MissingToInclude(s Subject, permissions []string, roles []Ref) (m Missing, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	who := x.are(s)
	for _, name := range permissions {
		if !x.hasEverywhere(who, name) {
			return Missing{Permission: name}, true
		}
	}
	for _, role := range roles {
		given, absent, ok := x.given(role)
		if !ok {
			return Missing{Role: absent}, true
		}
		for _, name := range given {
			if !x.hasEverywhere(who, name) {
				return Missing{Role: role, Permission: name}, true
			}
		}
	}
	return m, false
}

// MissingToOwn is what somebody lacks on an object of what is held on new owners of it, and above these.
func (x *Index) MissingToOwn(s Subject, object Place, uid string, owners []iam.Owner) (m Missing, lacks bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	k := x.kinds[object.Type]
	if k == nil {
		return m, false
	}
	who := x.are(s)
	has := x.has(who, k, object, uid)
	for _, owner := range owners {
		parent := k.parents[owner.Type]
		if parent == nil {
			continue
		}
		var above reach
		if !x.reachOwner(&above, parent, object, owner) {
			return Missing{At: Place{Type: owner.Type, Ref: Ref{Name: owner.Name}}}, true
		}
		for at := range above.all {
			for _, g := range at.grants {
				if name, lacks := x.lack(who, g.role.effective, k.held, has); lacks {
					return Missing{g.role.Ref, name, object}, true
				}
			}
		}
	}
	return m, false
}

// reachOwner finds the places where a role counts for what an owner has, and says whether it is there. One whose UID is not
// known yet is the one that has the name.
func (x *Index) reachOwner(r *reach, parent *kind, object Place, owner iam.Owner) (there bool) {
	for _, namespace := range [...]string{object.Namespace, ""} {
		above := Place{Type: owner.Type, Ref: Ref{namespace, owner.Name}}
		if o, is := x.object(above); is && (owner.UID == "" || owner.UID == o.UID) {
			there = true
			x.climb(r, parent, object, above)
		}
	}
	return there
}

// missing is what somebody lacks of what a role gives on an object, or on all of a kind.
func (x *Index) missing(who []*principal, role Ref, at Place, uid string) (m Missing, lacks bool) {
	given, absent, ok := x.given(role)
	if !ok {
		return Missing{Role: absent}, true
	}
	for _, name := range given {
		if _, known := x.permissions[name]; !known {
			return Missing{role, name, at}, true
		}
	}
	k := x.kinds[at.Type]
	if k == nil {
		return Missing{Role: role, At: at}, true
	}
	name, lacks := x.lack(who, x.roles[role].effective, k.held, x.has(who, k, at, uid))
	return Missing{role, name, at}, lacks
}

// lack is one of some permissions that somebody has neither here nor everywhere.
func (x *Index) lack(who []*principal, given, held, has bits) (name string, lacks bool) {
	for _, name := range x.namesOf(given, held, has) {
		if !x.hasEverywhere(who, name) {
			return name, true
		}
	}
	return "", false
}

// given are all permissions that a role says, registered or not, and those of all that it inherits. It is not ok if one
// of these is absent.
func (x *Index) given(role Ref) (permissions []string, absent Ref, ok bool) {
	seen := map[Ref]bool{role: true}
	for queue := []Ref{role}; len(queue) > 0; queue = queue[1:] {
		r := x.roles[queue[0]]
		if r == nil || !r.declared {
			return nil, queue[0], false
		}
		permissions = append(permissions, r.included...)
		for _, inherited := range r.inherits {
			if !seen[inherited] {
				seen[inherited] = true
				queue = append(queue, inherited)
			}
		}
	}
	slices.Sort(permissions)
	return slices.Compact(permissions), Ref{}, true
}

// has is what somebody has on an object of a UID, or on all of a kind. Where another object has the name, only what is had
// on all objects there counts.
func (x *Index) has(who []*principal, k *kind, at Place, uid string) bits {
	if t, there := x.object(at); at.All || there && t.UID != uid {
		at = Place{Type: at.Type, Ref: Ref{Namespace: at.Namespace}}
	}
	var r reach
	x.walk(&r, k, at, at.Namespace)
	return x.hasAmong(who, r.grants())
}

// hasEverywhere says whether somebody has a permission on all objects of its kind.
func (x *Index) hasEverywhere(who []*principal, name string) bool {
	n, known := x.permissions[name]
	if !known {
		return false
	}
	p := x.places[Place{Type: x.owners[n], All: true}]
	if p == nil {
		return false
	}
	return slices.ContainsFunc(p.grants, func(g *grant) bool {
		return g.gives(n) && slices.ContainsFunc(who, func(one *principal) bool { return one.grants.has(g) != nil })
	})
}

// hasAmong is what somebody has by some grants.
func (x *Index) hasAmong(who []*principal, grants map[*grant]struct{}) bits {
	all := x.bitsOf(nil)
	for _, p := range who {
		for g := range p.among(grants) {
			all.add(g.role.effective)
		}
	}
	return all
}
