package authz

import "slices"

// membershipKey is the membership of a user, by name and UID, in a group.
type membershipKey struct {
	user, uid string
	group     Ref
}

// subjectPrincipals holds the principals of the subject of one query. Both a user's groups and a grant's groups can be
// many, so a search uses the shorter of the two lists.
type subjectPrincipals struct {
	// own lists the principals without memberships: the User or ServiceAccount, and the groups of the authenticator.
	own  []*principal
	user string
	// memberships counts the memberships that name the user; it is 0 if the user is not active. groups lists the
	// user's groups; it is filled only once listed is true.
	memberships  int
	groups       []*principal
	groupsListed bool
}

// newSubjectPrincipals returns the principals of a subject, without the groups from GroupMemberships. An inactive
// subject has no principals. The result reuses the memory of own.
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
		own = x.appendActivePrincipal(own, Principal{Kind: CoreServiceAccount, UID: s.Account})
		own = x.appendActivePrincipal(own, Principal{ServiceAccount, Ref{Name: x.accountNames[s.Account]}, s.Account})
	}
	for _, name := range s.Groups { // A request may repeat a group many times.
		if p := x.principals[Principal{Kind: TokenGroup, Ref: Ref{Name: name}}]; p != nil && !slices.Contains(own, p) {
			own = append(own, p)
		}
	}
	who.own = own
	return who
}

// grantHolder returns the principal by which a subject holds a grant, or nil if the grant does not give the
// permission. Most grants belong to other subjects, so it compares the principals before the permissions.
func (x *Index) grantHolder(who *subjectPrincipals, g *grant, permission int) *principal {
	p := firstHolder(who.own, g)
	if p == nil && who.memberships == 0 || !g.hasPermission(permission) {
		return nil
	}
	if p == nil {
		p = x.groupHolder(who, g)
	}
	return p
}

// firstHolder returns the first principal that holds a grant, or nil.
func firstHolder(principals []*principal, g *grant) *principal {
	for _, p := range principals {
		if p.grants.bindingOfGrant(g) != nil {
			return p
		}
	}
	return nil
}

// groupHolder returns a group that holds a grant and has the user as a member, or nil. It searches the user's groups
// if they are fewer than the grant's groups.
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

// principalsOfSubject lists the principals of a subject, including groups, without duplicates. Several memberships may
// name the same group.
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

// appendActivePrincipal adds a principal if it is active and holds grants.
func (x *Index) appendActivePrincipal(who []*principal, p Principal) []*principal {
	if found := x.principals[p]; found != nil && x.isActivePrincipal(p) {
		return append(who, found)
	}
	return who
}
