package history

import "slices"

// Types of the objects that give access. Every other type is one of targets.
const (
	ProtectedResource = "ProtectedResource"
	Role              = "Role"
	PolicyBinding     = "PolicyBinding"
	Group             = "Group"
	GroupMembership   = "GroupMembership"
	User              = "User"
)

// Key identifies an object. The type of a target is <group>/<kind>, as IAM names the group.
type Key struct{ Type, Namespace, Name string }

// Reference refers to an object by its UID, too.
type Reference struct {
	Key
	UID string
}

// ObjectContent is the part of an object's content from which access follows.
type ObjectContent struct {
	UID string
	// Permissions holds what a Role gives, or what a ProtectedResource registers, as <group>/<plural>.<verb>.
	Permissions []string
	// Inherits holds the roles that a Role inherits.
	Inherits []Key
	// Registers is the type that a ProtectedResource registers, Parents its parent types.
	Registers string
	Parents   []string
	// Role, Subjects and On are the role, the holders and the target of a PolicyBinding. A target without a name stands
	// for all objects of its type. Groups of the authenticator have no UID.
	Role     Key
	Subjects []Reference
	On       Reference
	// Group and Member are the group and the user of a GroupMembership.
	Group  Key
	Member Reference
	// Owners holds the owners of a target.
	Owners []Reference
}

// AccessQuestion asks whether a user with these groups of the authenticator has a permission on an object.
type AccessQuestion struct {
	User       string
	Groups     []string
	Permission string
	On         Key
}

// possibleContents holds the possible contents of each object; one each if it is a single state.
type possibleContents map[Key][]*ObjectContent

// maxOwners bounds the length of a chain of owners.
const maxOwners = 8

// accessSearch looks for objects that give an answer of yes, as docs/guides/iam.md describes. It uses the same content of an object
// wherever the object occurs: a choice is taken back when the rest does not follow from it.
type accessSearch struct {
	contents possibleContents
	chosen   map[Key]*ObjectContent
	asked    AccessQuestion
}

// canAllow reports whether a choice of contents allows what is asked.
func (c possibleContents) canAllow(q AccessQuestion) bool {
	s := &accessSearch{contents: c, chosen: map[Key]*ObjectContent{}, asked: q}
	return s.withRegistration(q.On.Type, func(r *ObjectContent) bool {
		return slices.Contains(r.Permissions, q.Permission) && s.permissionHeldOn(q.On, maxOwners)
	})
}

// withObject reports whether then returns true for at least one possible content of an object.
func (s *accessSearch) withObject(k Key, then func(*ObjectContent) bool) bool {
	if o := s.chosen[k]; o != nil {
		return then(o)
	}
	for _, o := range s.contents[k] {
		if s.chosen[k] = o; then(o) {
			return true
		}
		delete(s.chosen, k)
	}
	return false
}

// anyObject reports whether then returns true for at least one object of a type.
func (s *accessSearch) anyObject(typ string, then func(*ObjectContent) bool) bool {
	for k := range s.contents {
		if k.Type == typ && s.withObject(k, then) {
			return true
		}
	}
	return false
}

func (s *accessSearch) withRegistration(typ string, then func(*ObjectContent) bool) bool {
	return s.anyObject(ProtectedResource, func(r *ObjectContent) bool { return r.Registers == typ && then(r) })
}

// permissionHeldOn reports whether the permission is held on all objects of the type, on the object, or on an owner of it.
func (s *accessSearch) permissionHeldOn(on Key, owners int) bool {
	return s.searchGrant(Reference{Key: Key{Type: on.Type}}) || s.withObject(on, func(o *ObjectContent) bool {
		return s.searchGrant(Reference{on, o.UID}) || owners > 0 && slices.ContainsFunc(o.Owners, func(owner Reference) bool {
			return s.withObject(owner.Key, func(o *ObjectContent) bool {
				return o.UID == owner.UID && s.withRegistration(on.Type, func(r *ObjectContent) bool {
					return slices.Contains(r.Parents, owner.Type) &&
						s.withRegistration(owner.Type, func(*ObjectContent) bool { return s.permissionHeldOn(owner.Key, owners-1) })
				})
			})
		})
	})
}

// searchGrant reports whether a PolicyBinding on this target gives the permission to the user.
func (s *accessSearch) searchGrant(on Reference) bool {
	return s.anyObject(PolicyBinding, func(b *ObjectContent) bool {
		return b.On == on && s.roleGives(b.Role, nil, func() bool { return slices.ContainsFunc(b.Subjects, s.subjectIncludes) })
	})
}

// roleGives reports whether the role, or one that it inherits, has the permission, and then returns true for that choice of
// roles. heirs holds the roles that were already followed; it stops a cycle.
func (s *accessSearch) roleGives(role Key, heirs []Key, then func() bool) bool {
	return !slices.Contains(heirs, role) && s.withObject(role, func(r *ObjectContent) bool {
		return slices.Contains(r.Permissions, s.asked.Permission) && then() || slices.ContainsFunc(r.Inherits, func(k Key) bool {
			return s.roleGives(k, append(slices.Clip(heirs), role), then)
		})
	})
}

// subjectIncludes reports whether a subject includes the user.
func (s *accessSearch) subjectIncludes(subject Reference) bool {
	if subject.UID == "" {
		return slices.Contains(s.asked.Groups, subject.Name)
	}
	user := Key{Type: User, Name: s.asked.User}
	return s.withObject(user, func(u *ObjectContent) bool {
		return subject == Reference{user, u.UID} || s.withObject(subject.Key, func(o *ObjectContent) bool {
			return subject.Type == Group && o.UID == subject.UID && s.anyObject(GroupMembership, func(m *ObjectContent) bool {
				return m.Group == subject.Key && m.Member == Reference{user, u.UID}
			})
		})
	})
}
