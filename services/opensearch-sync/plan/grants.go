package plan

import (
	"regexp"
	"slices"
	"strings"
)

// Grants lists the mappings of protected roles.
type Grants []grant

// grant is the mapping of one role that OpenSearch protects.
type grant struct {
	role                string
	users, backend, all []matcher
}

// matcher reports whether an entry of a mapping matches a name.
type matcher func(name string) bool

// GrantsOf returns the grants of all mappings whose role is reserved, hidden or static.
func GrantsOf(roles, mappings map[string]Entity) (all Grants) {
	for role, mapping := range mappings {
		if has := mapping.Entries(); roles[role].Guarded {
			// An entry * gives the role to every user, so a name gains nothing by it.
			named := slices.DeleteFunc(slices.Clone(has.Users), func(entry string) bool { return entry == "*" })
			all = append(all, grant{role, newMatchers(named), newMatchers(has.BackendRoles), newMatchers(has.And)})
		}
	}
	return all
}

// To returns the roles that a user has by its name or backend roles, sorted. It leaves out roles for which admission
// decides.
func (g Grants) To(name string, backendRoles []string) (roles []string) {
	for _, m := range g {
		undecided := slices.DeleteFunc(slices.Clone(backendRoles), func(b string) bool { return decidedRole(b) == m.role })
		together := len(m.all) > 0 && !slices.ContainsFunc(m.all, func(one matcher) bool { return !slices.ContainsFunc(backendRoles, one) })
		if together || matchAny(m.users, name) || slices.ContainsFunc(undecided, func(b string) bool { return matchAny(m.backend, b) }) {
			roles = append(roles, m.role)
		}
	}
	slices.Sort(roles)
	return roles
}

// decidedRole returns the role for which admission requires the verb bind when a user gets the backend role.
func decidedRole(backendRole string) string {
	switch backendRole {
	case "admin":
		return "all_access"
	case "kibanauser":
		return "kibana_user"
	case "snapshotrestore":
		return "manage_snapshots"
	case "logstash", "readall":
		return backendRole
	default:
		return ""
	}
}

func matchAny(all []matcher, name string) bool {
	return slices.ContainsFunc(all, func(matches matcher) bool { return matches(name) })
}

func newMatchers(entries []string) []matcher {
	all := make([]matcher, len(entries))
	for i, entry := range entries {
		all[i] = newMatcher(entry)
	}
	return all
}

// newMatcher reads an entry as OpenSearch does: a pattern with * and ?, or a name. An expression between slashes
// matches every name, because Java and Go read some expressions differently.
func newMatcher(entry string) matcher {
	switch {
	case len(entry) > 1 && strings.HasPrefix(entry, "/") && strings.HasSuffix(entry, "/"):
		return func(string) bool { return true }
	case strings.ContainsAny(entry, "*?"):
		pattern := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(entry))
		return regexp.MustCompile("(?s)^" + pattern + "$").MatchString
	default:
		return func(name string) bool { return name == entry }
	}
}
