package plan

import (
	"regexp"
	"slices"
	"strings"
)

// RoleHolder is a user that has a role. Either the user names the role, or the mapping of the role names backend roles of
// the user.
type RoleHolder struct {
	User         string
	Direct       bool
	BackendRoles []string
}

// UserAccount holds the roles and backend roles of a user that the server stores. The server does not store users of LDAP
// or OIDC.
type UserAccount struct {
	Name                string
	Roles, BackendRoles []string
}

// ListAccounts returns the users of a listing, sorted by name.
func ListAccounts(users map[string]Entity) (all []UserAccount) {
	for name, user := range users {
		all = append(all, UserAccount{name, user.stringListOf(fieldRoles), user.stringListOf(fieldBackendRoles)})
	}
	slices.SortFunc(all, func(a, b UserAccount) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// FindHolders returns the accounts that have a role directly or through backend roles in its mapping.
func FindHolders(role string, mapping MappingEntries, accounts []UserAccount) (all []RoleHolder) {
	for _, a := range accounts {
		h := RoleHolder{User: a.Name, Direct: slices.Contains(a.Roles, role)}
		for _, entry := range mapping.BackendRoles {
			h.BackendRoles = append(h.BackendRoles, matchingTexts(entry, a.BackendRoles)...)
		}
		var together []string
		for _, entry := range mapping.And {
			by := matchingTexts(entry, a.BackendRoles)
			if together = append(together, by...); len(by) == 0 {
				together = nil
				break
			}
		}
		if h.BackendRoles = sortUnique(append(h.BackendRoles, together...)); h.Direct || len(h.BackendRoles) > 0 {
			all = append(all, h)
		}
	}
	return all
}

// matchingTexts returns the texts that an OpenSearch pattern matches. A regular expression that Go cannot compile matches
// nothing.
func matchingTexts(pattern string, texts []string) (all []string) {
	if !strings.ContainsAny(pattern, "*?/") {
		if slices.Contains(texts, pattern) {
			all = []string{pattern}
		}
		return all
	}
	expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	if len(pattern) > 1 && strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/") {
		expression = pattern[1 : len(pattern)-1]
	}
	compiled, err := regexp.Compile("(?s)^(?:" + expression + ")$")
	for _, text := range texts {
		if err == nil && compiled.MatchString(text) {
			all = append(all, text)
		}
	}
	return all
}
