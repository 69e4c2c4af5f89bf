package decide

import "slices"

// belonging is that of a user, as memberships name him, to a group.
type belonging struct {
	user, uid string
	group     Ref
}

// asker is somebody of whom it is to be found out whether he has a grant. He may be in as many groups as whoever owns them
// likes, and a grant may be to as many: of both the fewer are gone through.
type asker struct {
	// own are what he is by himself: his User or account, and the groups of the authenticator.
	own  []*principal
	user string
	// memberships are how many name him, unless nothing follows from these; groups are what he is by them once they are listed.
	memberships int
	groups      []*principal
	listed      bool
}

// asker lists what a subject is by himself. Who is inactive is nobody, whatever his groups.
func (x *Index) asker(s Subject, own []*principal) (who asker) {
	u := x.users[s.User]
	if u.inactive || x.isInactive(s.Account) {
		return who
	}
	if u.acts() {
		if p := x.principals[Principal{User, Ref{Name: s.User}, u.uid}]; p != nil {
			own = append(own, p)
		}
		who.user, who.memberships = s.User, len(x.membershipsOf[s.User])
	}
	if s.Account != "" {
		own = x.appendPrincipal(own, Principal{Sort: CoreServiceAccount, UID: s.Account})
		own = x.appendPrincipal(own, Principal{ServiceAccount, Ref{Name: x.accountNames[s.Account]}, s.Account})
	}
	for _, name := range s.Groups { // Whoever asks names one as often as they like.
		if p := x.principals[Principal{Sort: TokenGroup, Ref: Ref{Name: name}}]; p != nil && !slices.Contains(own, p) {
			own = append(own, p)
		}
	}
	who.own = own
	return who
}

// holder is what somebody has a grant as, if that gives a permission; nil if he does not have it, or it does not. Most questions are
// refused: of what others have, it is not even looked what it gives.
func (x *Index) holder(who *asker, g *grant, permission int) *principal {
	p := who.has(g)
	if p == nil && who.memberships == 0 || !g.gives(permission) {
		return nil
	}
	if p == nil {
		p = x.granted(who, g)
	}
	return p
}

// has is what somebody has a grant as by himself; nil if he does not.
func (who *asker) has(g *grant) *principal { return holderAmong(who.own, g) }

func holderAmong(principals []*principal, g *grant) *principal {
	for _, p := range principals {
		if p.grants.has(g) != nil {
			return p
		}
	}
	return nil
}

// granted is the group that somebody is in by a membership and that has a grant; nil if there is none. His groups are listed if
// they are the fewer.
func (x *Index) granted(who *asker, g *grant) *principal {
	if who.memberships >= len(g.groups) {
		for p := range g.groups {
			if x.exists(p.Principal) && x.belongs(who.user, p.Ref) {
				return p
			}
		}
		return nil
	}
	return holderAmong(who.groups, g)
}

// belongs says whether a membership that counts makes a user who acts a member of a group.
func (x *Index) belongs(user string, group Ref) bool {
	return x.belongings[belonging{user, x.users[user].uid, group}] > 0
}

// are is whom a subject is: by himself, and by his groups. As many memberships may lead to one as somebody likes: each is told once.
func (x *Index) are(s Subject) []*principal {
	who := x.asker(s, nil)
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

// appendGroups adds the groups of a user who acts that have something.
func (x *Index) appendGroups(all []*principal, user string) []*principal {
	for ref := range x.membershipsOf[user] {
		if m := x.memberships[ref]; x.counts(m) {
			all = x.appendPrincipal(all, Principal{Group, m.group, x.groups[m.group]})
		}
	}
	return all
}

// appendPrincipal adds one who exists, and has something.
func (x *Index) appendPrincipal(who []*principal, p Principal) []*principal {
	if found := x.principals[p]; found != nil && x.exists(p) {
		return append(who, found)
	}
	return who
}
