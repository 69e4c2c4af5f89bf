package plan

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxPatterns bounds the patterns that are compared. A role with a further one counts as given to every user.
	maxPatterns = 100
	// maxBackendRoles bounds the backend roles of a listed user that are compared.
	maxBackendRoles = 10_000
)

// ProtectedGrants holds the protected roles, and the entries of their mappings by the name or backend role that they match.
type ProtectedGrants struct {
	guarded        map[string]bool
	users, backend grantIndex
	joint          []jointGrant
	// patterns counts the patterns. rest is the first role by name with a pattern beyond maxPatterns, or "".
	patterns int
	rest     string
}

// grantIndex holds the roles that entries give: for entries without a pattern by their text, and for others one by one.
type grantIndex struct {
	exact    map[string][]string
	patterns []patternGrant
}

type patternGrant struct {
	role    string
	matches nameMatcher
}

// jointGrant gives a role to users whose backend roles match all entries.
type jointGrant struct {
	role     string
	exact    []string
	patterns []nameMatcher
}

// nameMatcher reports whether an entry of a mapping matches a name.
type nameMatcher func(name string) bool

// FindProtectedGrants returns the grants of all roles that are reserved, hidden or static, or whose mapping is. It keeps only
// what matches the given names and backend roles, because a server can list a million entries.
func FindProtectedGrants(roles, mappings map[string]Entity, names map[string]bool) (g ProtectedGrants) {
	g.guarded, g.users.exact, g.backend.exact = map[string]bool{}, map[string][]string{}, map[string][]string{}
	for _, listed := range []map[string]Entity{roles, mappings} {
		for role, entity := range listed {
			if entity.Guarded {
				g.guarded[role] = true
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(g.guarded)) {
		has := mappings[role].MappingEntries()
		for _, entry := range has.Users {
			if entry != "*" { // It gives the role to every user, so a name gains nothing by it.
				g.addEntry(&g.users, role, entry, names)
			}
		}
		for _, entry := range has.BackendRoles {
			g.addEntry(&g.backend, role, entry, names)
		}
		g.addJointEntries(role, has.And, names)
	}
	return g
}

// addEntry adds an entry of a mapping to an index, if one of the names can match it.
func (g *ProtectedGrants) addEntry(to *grantIndex, role, entry string, names map[string]bool) {
	switch {
	case !isNamePattern(entry) && names[entry]:
		to.exact[entry] = append(to.exact[entry], role)
	case isNamePattern(entry):
		if g.countPattern(role); g.patterns <= maxPatterns {
			to.patterns = append(to.patterns, patternGrant{role, newNameMatcher(entry)})
		}
	}
}

// addJointEntries adds the joint list of a mapping, if the names can match all of it.
func (g *ProtectedGrants) addJointEntries(role string, entries []string, names map[string]bool) {
	joint := jointGrant{role: role}
	for _, entry := range entries {
		switch {
		case !isNamePattern(entry) && !names[entry]:
			return
		case !isNamePattern(entry):
			joint.exact = append(joint.exact, entry)
		default:
			if g.countPattern(role); g.patterns > maxPatterns {
				return
			}
			joint.patterns = append(joint.patterns, newNameMatcher(entry))
		}
	}
	if len(entries) > 0 {
		g.joint = append(g.joint, joint)
	}
}

// countPattern counts a pattern of a role.
func (g *ProtectedGrants) countPattern(role string) {
	if g.patterns++; g.patterns > maxPatterns && g.rest == "" {
		g.rest = role
	}
}

// rolesGivenTo returns the roles that entries of an index give to a name.
func (i grantIndex) rolesGivenTo(name string) []string {
	roles := slices.Clone(i.exact[name])
	for _, p := range i.patterns {
		if p.matches(name) {
			roles = append(roles, p.role)
		}
	}
	return roles
}

// RolesOfUser returns the protected roles that a user of this name and content has, sorted. It leaves out what admission decides.
// A backend role counts as the role of its name: no API shows whether roles_mapping_resolution makes it one.
func (g ProtectedGrants) RolesOfUser(name string, user Body) []string {
	backendRoles := user.backendRoles()
	roles := g.users.rolesGivenTo(name)
	for _, b := range backendRoles {
		byBackend := g.backend.rolesGivenTo(b)
		if g.guarded[b] {
			byBackend = append(byBackend, b)
		}
		roles = append(roles, slices.DeleteFunc(byBackend, func(role string) bool { return role == roleOfBackendRole(b) })...)
	}
	set := textSet(backendRoles)
	for _, joint := range g.joint {
		if !slices.ContainsFunc(joint.exact, func(one string) bool { return !set[one] }) &&
			!slices.ContainsFunc(joint.patterns, func(one nameMatcher) bool { return !slices.ContainsFunc(backendRoles, one) }) {
			roles = append(roles, joint.role)
		}
	}
	for _, role := range user.stringListOf(fieldRoles) {
		if g.guarded[role] && !isCheckedByAdmission(role) {
			roles = append(roles, role)
		}
	}
	if g.rest != "" {
		roles = append(roles, g.rest)
	}
	return sortUnique(roles)
}

// GrantNames returns the names and backend roles of users, as declared and as listed, that grants can match.
func GrantNames(users []DeclaredObject, actual map[string]Entity) map[string]bool {
	names := map[string]bool{}
	for _, o := range users {
		names[o.Name] = true
		for _, b := range slices.Concat(o.Body.backendRoles(), actual[o.Name].backendRoles()) {
			names[b] = true
		}
	}
	return names
}

// backendRoles returns the backend roles of a user that are compared.
func (b Body) backendRoles() []string {
	all := b.stringListOf(fieldBackendRoles)
	return all[:min(len(all), maxBackendRoles)]
}

// RolesUncheckedByAdmission returns the names of the protected roles that admission lets give without the verb bind.
func RolesUncheckedByAdmission(roles map[string]Entity) map[string]bool {
	all := map[string]bool{}
	for role, entity := range roles {
		all[role] = entity.Guarded && !isCheckedByAdmission(role)
	}
	return all
}

// isCheckedByAdmission reports whether admission requires the verb bind to give a role. The policies of users and bindings in
// deploy/admission/opensearch.yaml have the same list.
func isCheckedByAdmission(role string) bool {
	switch role {
	case "all_access", "kibana_read_only", "kibana_server", "kibana_user", "logstash", "manage_snapshots", "own_index", "ppl_full_access",
		"point_in_time_full_access", "query_assistant_access", "readall", "readall_and_monitor", "index_management_full_access",
		"query_insights_full_access":
		return true
	}
	return slices.ContainsFunc([]string{
		"security_", "alerting_", "anomaly_", "asynchronous_search_", "cross_cluster_", "flow_framework_", "forecast_", "geospatial_", "ip2geo_",
		"knn_", "ltr_", "ml_", "notebooks_", "notifications_", "observability_", "reports_", "snapshot_management_",
	}, func(prefix string) bool { return strings.HasPrefix(role, prefix) })
}

// roleOfBackendRole returns the role for which admission requires the verb bind when a user gets the backend role.
func roleOfBackendRole(backendRole string) string {
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

// isNamePattern reports whether OpenSearch reads an entry as a pattern or an expression.
func isNamePattern(entry string) bool {
	return strings.ContainsAny(entry, "*?") || len(entry) > 1 && strings.HasPrefix(entry, "/") && strings.HasSuffix(entry, "/")
}

// newNameMatcher reads a pattern as OpenSearch does. An expression between slashes matches every name, because Java and Go
// read some expressions differently. In Java, two question marks match one rune above U+FFFF.
func newNameMatcher(pattern string) nameMatcher {
	if len(pattern) > 1 && strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/") {
		return func(string) bool { return true }
	}
	expression := strings.NewReplacer(`\*`, ".*", `\?`, ".?").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("(?s)^" + expression + "$").MatchString
}
