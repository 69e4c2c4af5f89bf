package plan

import (
	"regexp"
	"slices"
	"strings"
)

// ProtectedGrants lists the protected roles and their mappings.
type ProtectedGrants []protectedGrant

// protectedGrant is one role that OpenSearch protects, with its mapping.
type protectedGrant struct {
	role                string
	users, backend, all []nameMatcher
}

// nameMatcher reports whether an entry of a mapping matches a name.
type nameMatcher func(name string) bool

// FindProtectedGrants returns the grants of all roles that are reserved, hidden or static, or whose mapping is.
func FindProtectedGrants(roles, mappings map[string]Entity) (all ProtectedGrants) {
	guarded := map[string]bool{}
	for _, listed := range []map[string]Entity{roles, mappings} {
		for role, entity := range listed {
			guarded[role] = guarded[role] || entity.Guarded
		}
	}
	for role, is := range guarded {
		if has := mappings[role].MappingEntries(); is {
			// An entry * gives the role to every user, so a name gains nothing by it.
			named := slices.DeleteFunc(slices.Clone(has.Users), func(entry string) bool { return entry == "*" })
			all = append(all, protectedGrant{role, newNameMatchers(named), newNameMatchers(has.BackendRoles), newNameMatchers(has.And)})
		}
	}
	return all
}

// RolesOfUser returns the protected roles that a user of this name and content has, sorted. It leaves out what admission decides.
// A backend role counts as the role of its name: no API shows whether roles_mapping_resolution makes it one.
func (g ProtectedGrants) RolesOfUser(name string, user Body) (roles []string) {
	backendRoles := user.stringListOf(fieldBackendRoles)
	for _, m := range g {
		undecided := slices.DeleteFunc(slices.Clone(backendRoles), func(b string) bool { return roleOfBackendRole(b) == m.role })
		together := len(m.all) > 0 && !slices.ContainsFunc(m.all, func(one nameMatcher) bool { return !slices.ContainsFunc(backendRoles, one) })
		byBackend := slices.ContainsFunc(undecided, func(b string) bool { return b == m.role || matchesAny(m.backend, b) })
		if together || byBackend || matchesAny(m.users, name) || !isCheckedByAdmission(m.role) && slices.Contains(user.stringListOf(fieldRoles), m.role) {
			roles = append(roles, m.role)
		}
	}
	slices.Sort(roles)
	return roles
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

func matchesAny(all []nameMatcher, name string) bool {
	return slices.ContainsFunc(all, func(matches nameMatcher) bool { return matches(name) })
}

func newNameMatchers(entries []string) []nameMatcher {
	all := make([]nameMatcher, len(entries))
	for i, entry := range entries {
		all[i] = newNameMatcher(entry)
	}
	return all
}

// newNameMatcher reads an entry as OpenSearch does: a pattern with * and ?, or a name. An expression between slashes
// matches every name, because Java and Go read some expressions differently. In Java two ? match one rune above U+FFFF.
func newNameMatcher(entry string) nameMatcher {
	switch {
	case len(entry) > 1 && strings.HasPrefix(entry, "/") && strings.HasSuffix(entry, "/"):
		return func(string) bool { return true }
	case strings.ContainsAny(entry, "*?"):
		pattern := strings.NewReplacer(`\*`, ".*", `\?`, ".?").Replace(regexp.QuoteMeta(entry))
		return regexp.MustCompile("(?s)^" + pattern + "$").MatchString
	default:
		return func(name string) bool { return name == entry }
	}
}
