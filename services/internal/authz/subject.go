package authz

import (
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// accountState holds the UID and the state of a User or ServiceAccount.
type accountState struct {
	uid      string
	inactive bool
}

// isActive reports whether the account exists and is active.
func (a accountState) isActive() bool { return a.uid != "" && !a.inactive }

// isActiveWithUID reports whether the account is active and has the UID.
func (a accountState) isActiveWithUID(uid string) bool { return a.uid == uid && a.isActive() }

type membership struct {
	user         string
	recordedUser iamv1alpha1.Member
	group        Ref
}

// SetUser adds, replaces or removes a User.
func (x *Index) SetUser(name string, u *iamv1alpha1.User) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.users[name] = accountOfUser(u); x.users[name] == (accountState{}) {
		delete(x.users, name)
	}
}

// accountOfUser returns the account of a User, or an empty account for nil. An inactive User stays inactive during its
// deletion.
func accountOfUser(u *iamv1alpha1.User) (a accountState) {
	if isAlive(u) {
		a.uid = string(u.UID)
	}
	a.inactive = u != nil && u.Status.State == iamv1alpha1.Inactive
	return a
}

// IsUserUpToDate reports whether the index holds the UID, the state and the owners of a User as declared.
func (x *Index) IsUserUpToDate(declared *iamv1alpha1.User) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.users[declared.Name] == accountOfUser(declared) && x.isUpToDate(userType, &declared.ObjectMeta)
}

// SetServiceAccount adds, replaces or removes a ServiceAccount of IAM.
func (x *Index) SetServiceAccount(name string, a *iamv1alpha1.ServiceAccount) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if was := x.accounts[name]; x.accountNames[was.uid] == name {
		delete(x.accountNames, was.uid)
	}
	delete(x.accounts, name)
	// A deleted object is kept here if it is inactive, because the account stays inactive during the deletion.
	if a != nil && (isAlive(a) || a.Spec.State == iamv1alpha1.Inactive) {
		x.accounts[name] = accountState{string(a.UID), a.Spec.State == iamv1alpha1.Inactive}
		x.accountNames[string(a.UID)] = name
	}
}

// SetGroup adds, replaces or removes a Group.
func (x *Index) SetGroup(namespace, name string, g *iamv1alpha1.Group) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if isAlive(g) {
		x.groups[Ref{namespace, name}] = string(g.UID)
	} else {
		delete(x.groups, Ref{namespace, name})
	}
}

// SetMembership adds, replaces or removes a GroupMembership.
func (x *Index) SetMembership(namespace, name string, declared *iamv1alpha1.GroupMembership) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ref := Ref{namespace, name}
	if was, ok := x.memberships[ref]; ok {
		x.membershipsOf.removeValue(was.user, ref)
		x.membershipsIn.removeValue(was.group, ref)
		x.adjustMembershipCount(was, -1)
		delete(x.memberships, ref)
	}
	if !isAlive(declared) {
		return
	}
	m := membership{user: declared.Spec.UserRef.Name, group: Ref{declared.Spec.GroupRef.Namespace, declared.Spec.GroupRef.Name}}
	if first := declared.Status.User; first != nil {
		m.recordedUser = *first
	}
	x.memberships[ref] = m
	x.membershipsOf.addValue(m.user, ref)
	x.membershipsIn.addValue(m.group, ref)
	x.adjustMembershipCount(m, 1)
}

// adjustMembershipCount adds by, which is 1 or -1, to the count of a membership. It ignores a membership whose status
// records a user with another name than its spec.
func (x *Index) adjustMembershipCount(m membership, by int) {
	if m.recordedUser.Name != m.user {
		return
	}
	b := membershipKey{m.user, m.recordedUser.UID, m.group}
	if x.belongings[b] += by; x.belongings[b] == 0 {
		delete(x.belongings, b)
	}
}

// isEffectiveMembership reports whether the membership was recorded for the active user that has the name now.
func (x *Index) isEffectiveMembership(m membership) bool {
	return m.recordedUser.Name == m.user && x.users[m.user].isActiveWithUID(m.recordedUser.UID)
}

// PrincipalKind is the kind of a principal.
type PrincipalKind int

// Kinds of principals. User, ServiceAccount and Group are objects of IAM. CoreServiceAccount is an account of the core
// API, and TokenGroup a group that the authenticator reports.
const (
	User PrincipalKind = iota + 1
	ServiceAccount
	CoreServiceAccount
	Group
	TokenGroup
)

// Principal is a subject that a binding can name.
type Principal struct {
	Kind PrincipalKind
	Ref
	UID string
}

// principal is a Principal with its grants.
type principal struct {
	Principal

	// grants holds the grants of the bindings that name the principal.
	grants grantSet
}

// principalOf returns the principal of a subject. ok is false if the subject lacks a required field, such as the UID.
func principalOf(s iamv1alpha1.Subject) (p Principal, ok bool) {
	switch {
	case s.Kind == iamv1alpha1.GroupKind && strings.Contains(s.Name, ":"):
		return Principal{Kind: TokenGroup, Ref: Ref{Name: s.Name}}, true
	case s.UID == "":
		return p, false
	case s.Kind == iamv1alpha1.GroupKind:
		return Principal{Group, Ref{s.Namespace, s.Name}, s.UID}, s.Namespace != ""
	case s.Kind == iamv1alpha1.UserKind:
		return Principal{User, Ref{Name: s.Name}, s.UID}, true
	case s.Kind == iamv1alpha1.ServiceAccountKind && s.Namespace == "":
		return Principal{ServiceAccount, Ref{Name: s.Name}, s.UID}, true
	}
	return Principal{Kind: CoreServiceAccount, UID: s.UID}, s.Kind == iamv1alpha1.ServiceAccountKind
}

// principalsOf returns the principals of subjects. It skips subjects that lack a required field.
func principalsOf(subjects []iamv1alpha1.Subject) []Principal {
	all := make([]Principal, 0, len(subjects))
	for _, s := range subjects {
		if p, ok := principalOf(s); ok {
			all = append(all, p)
		}
	}
	return all
}

// isInactiveAccount reports whether an inactive ServiceAccount of IAM has the UID.
func (x *Index) isInactiveAccount(uid string) bool {
	name, known := x.accountNames[uid]
	return known && x.accounts[name].inactive
}

// isActivePrincipal reports whether the principal exists with its UID and is active.
func (x *Index) isActivePrincipal(p Principal) bool {
	switch p.Kind {
	case User:
		return x.users[p.Name].isActiveWithUID(p.UID)
	case ServiceAccount:
		return x.accounts[p.Name].isActiveWithUID(p.UID)
	case Group:
		return x.groups[p.Ref] == p.UID
	case CoreServiceAccount:
		return !x.isInactiveAccount(p.UID)
	case TokenGroup:
	}
	return true
}

// Subject is the subject of a query.
type Subject struct {
	// User is the name of a User, Account the UID of a ServiceAccount. Normally at most one is set.
	User, Account string
	// Groups lists the groups that the authenticator reports.
	Groups []string
}
