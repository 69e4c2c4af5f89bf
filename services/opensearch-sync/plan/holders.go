package plan

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Holder is a user that has a role, and the backend roles that it has the role by.
type Holder struct {
	User string
	// Direct means that the user itself names the role.
	Direct       bool
	BackendRoles []string
}

// Holders finds users by what gives them roles.
type Holders struct{ direct, backend map[string][]string }

// NewHolders indexes the users of a server. Users that come from elsewhere, as by LDAP, are not among them.
func NewHolders(users map[string]Entity) Holders {
	h := Holders{direct: map[string][]string{}, backend: map[string][]string{}}
	for name, user := range users {
		for _, role := range user.list("opendistro_security_roles") {
			h.direct[role] = append(h.direct[role], name)
		}
		for _, role := range user.list(fieldBackendRoles) {
			h.backend[role] = append(h.backend[role], name)
		}
	}
	return h
}

// Roles returns the roles that users name themselves.
func (h Holders) Roles() []string { return slices.Sorted(maps.Keys(h.direct)) }

// Of returns the users that have a role directly, or by the backend roles of its mapping.
func (h Holders) Of(role string, has Entries) []Holder {
	found := map[string]Holder{}
	for _, user := range h.direct[role] {
		found[user] = Holder{User: user, Direct: true}
	}
	by := func(users map[string][]string) {
		for user, roles := range users {
			holder := found[user]
			found[user] = Holder{user, holder.Direct, sorted(append(holder.BackendRoles, roles...))}
		}
	}
	for _, entry := range has.BackendRoles {
		by(h.having(entry))
	}
	all := map[string][]string{}
	for i, entry := range has.And {
		having := h.having(entry)
		if i == 0 {
			all = having
		}
		maps.DeleteFunc(all, func(user string, _ []string) bool { return having[user] == nil })
		for user, roles := range all {
			all[user] = slices.Concat(roles, having[user])
		}
	}
	by(all)
	return slices.SortedFunc(maps.Values(found), func(a, b Holder) int { return strings.Compare(a.User, b.User) })
}

// having returns the users that have a backend role which an entry of a mapping matches, and which ones these are.
func (h Holders) having(entry string) map[string][]string {
	users := map[string][]string{}
	for role, have := range h.backend {
		if entry == role || strings.ContainsAny(entry, "*?/") && matches(entry, role) {
			for _, user := range have {
				users[user] = append(users[user], role)
			}
		}
	}
	return users
}

// matches reports whether a pattern of OpenSearch matches a text. A regular expression that only Java compiles matches nothing here.
func matches(pattern, text string) bool {
	expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	if len(pattern) > 1 && strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/") {
		expression = pattern[1 : len(pattern)-1]
	}
	compiled, err := regexp.Compile("(?s)^(?:" + expression + ")$")
	return err == nil && compiled.MatchString(text)
}
