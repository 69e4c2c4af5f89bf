package plan

import "slices"

// ExplainedEntry is an entry of a role's mapping, with its sources.
type ExplainedEntry struct {
	List, Value string
	// Bindings holds the UIDs of the bindings that give the entry.
	Bindings []string
	// Foreign marks an entry that is not in the record of any binding. Exists marks one that the mapping has now.
	Foreign, Exists bool
}

// MappingEntries returns the entries of a mapping.
func (e Entity) MappingEntries() MappingEntries { return roleMapping{Entity: e}.actualEntries() }

// ExplainMapping lists the entries that the mapping of a role has or shall have, with the source of each.
func ExplainMapping(role string, bindings []RoleBinding, actual Entity) []ExplainedEntry {
	m := roleMapping{role: role, exists: true, Entity: actual, bindings: bindings}
	has := m.actualEntries()
	foreign := m.foreignEntries(has)
	all := has
	for _, b := range bindings {
		if m.isDeclaredBy(b) {
			all = all.union(b.Entries)
		}
	}
	var explained []ExplainedEntry
	for _, list := range []struct {
		name string
		of   func(MappingEntries) []string
	}{
		{"users", func(e MappingEntries) []string { return e.Users }},
		{fieldBackendRoles, func(e MappingEntries) []string { return e.BackendRoles }},
		{"hosts", func(e MappingEntries) []string { return e.Hosts }},
		{"and_backend_roles", func(e MappingEntries) []string { return e.And }},
	} {
		for _, value := range list.of(all) {
			e := ExplainedEntry{List: list.name, Value: value, Foreign: slices.Contains(list.of(foreign), value), Exists: slices.Contains(list.of(has), value)}
			for _, b := range bindings {
				if m.isDeclaredBy(b) && slices.Contains(list.of(b.Entries), value) {
					e.Bindings = append(e.Bindings, b.UID)
				}
			}
			explained = append(explained, e)
		}
	}
	return explained
}
