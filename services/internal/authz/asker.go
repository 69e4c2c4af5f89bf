package authz

import "slices"

// membershipKey is the membership of a user, by name and UID, in a group.
type membershipKey struct {
	user, uid string
	group     Ref
}

// subjectPrincipals holds the principals of the subject of one query. A user may be in any number of groups, and a grant
// may name any number of groups. The search goes through the shorter list of both.
type subjectPrincipals struct {
	// own lists the principals without memberships: the User or ServiceAccount, and the groups of the authenticator.
	own  []*principal
	user string
	// memberships counts the memberships that name the user; it is 0 if none can count. groups lists the groups of the
	// user, but only after listed is set.
	memberships int
	groups      []*principal
	listed      bool
}

// newSubjectPrincipals returns the principals of a subject without its groups of IAM. An inactive subject has no principals at all.
// The result reuses the memory of own.
func (x *Index) newSubjectPrincipals(s Subject, own []*principal) (who subjectPrincipals) {
	u := x.users[s.User]
	if u.inactive || x.isInactiveAccount(s.Account) {
		return who
	}
	if u.isActive() {
		if p := x.principals[Principal{User, Ref{Name: s.User}, u.uid}]; p != nil {
			own = append(own, p)
		}
		who.user, who.memberships = s.User, len(x.membershipsOf[s.User])
	}
	if s.Account != "" {
		own = x.appendActivePrincipal(own, Principal{Sort: CoreServiceAccount, UID: s.Account})
		own = x.appendActivePrincipal(own, Principal{ServiceAccount, Ref{Name: x.accountNames[s.Account]}, s.Account})
	}
	for _, name := range s.Groups { // A request may repeat a group any number of times.
		if p := x.principals[Principal{Sort: TokenGroup, Ref: Ref{Name: name}}]; p != nil && !slices.Contains(own, p) {
			own = append(own, p)
		}
	}
	who.own = own
	return who
}

// grantHolder returns the principal by which a subject holds a grant, if the grant gives a permission; otherwise nil. Most
// queries are refused, so it compares the principals before the permissions.
func (x *Index) grantHolder(who *subjectPrincipals, g *grant, permission int) *principal {
	p := who.directHolder(g)
	if p == nil && who.memberships == 0 || !g.hasPermission(permission) {
		return nil
	}
	if p == nil {
		p = x.groupHolder(who, g)
	}
	return p
}

// directHolder returns the own principal that holds a grant, or nil.
func (who *subjectPrincipals) directHolder(g *grant) *principal { return firstHolder(who.own, g) }

func firstHolder(principals []*principal, g *grant) *principal {
	for _, p := range principals {
		if p.grants.bindingOfGrant(g) != nil {
			return p
		}
	}
	return nil
}

// groupHolder returns a group that holds a grant and has the user as a member, or nil. It goes through the memberships
// of the user if they are fewer than the groups of the grant.
func (x *Index) groupHolder(who *subjectPrincipals, g *grant) *principal {
	if who.memberships >= len(g.groups) {
		for p := range g.groups {
			if x.isActivePrincipal(p.Principal) && x.isMember(who.user, p.Ref) {
				return p
			}
		}
		return nil
	}
	return firstHolder(who.groups, g)
}

// isMember reports whether a valid membership makes an active user a member of a group.
func (x *Index) isMember(user string, group Ref) bool {
	return x.belongings[membershipKey{user, x.users[user].uid, group}] > 0
}

// principalsOfSubject lists the principals of a subject, including groups, each once. Several memberships may name the same group.
func (x *Index) principalsOfSubject(s Subject) []*principal {
	who := x.newSubjectPrincipals(s, nil)
	if who.memberships == 0 {
		return who.own
	}
	all, told := x.appendGroups(who.own, who.user), map[*principal]bool{}
	return slices.DeleteFunc(all, func(p *principal) bool {
		before := told[p]
		told[p] = true
		return before
	})
}

// appendGroups adds the groups of an active user that hold grants.
func (x *Index) appendGroups(all []*principal, user string) []*principal {
	for ref := range x.membershipsOf[user] {
		if m := x.memberships[ref]; x.isEffectiveMembership(m) {
			all = x.appendActivePrincipal(all, Principal{Group, m.group, x.groups[m.group]})
		}
	}
	return all
}

// appendActivePrincipal adds a principal if it exists and holds grants.
func (x *Index) appendActivePrincipal(who []*principal, p Principal) []*principal {
	if found := x.principals[p]; found != nil && x.isActivePrincipal(p) {
		return append(who, found)
	}
	return who
}
