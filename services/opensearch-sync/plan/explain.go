package plan

import "slices"

// Explained is an entry of a role's mapping, and who put it there.
type Explained struct {
	List, Value string
	// Bindings are the UIDs of those that give it.
	Bindings []string
	// Foreign entries are there without any of them, too.
	Foreign, Exists bool
}

// Entries are those of a mapping.
func (e Entity) Entries() Entries { return mapping{Entity: e}.has() }

// Explain tells who put each entry of the mapping of a role there.
func Explain(role string, bindings []Binding, actual Entity) []Explained {
	m := mapping{role: role, exists: true, Entity: actual, bindings: bindings}
	has := m.has()
	foreign := m.foreign(has)
	all := has
	for _, b := range bindings {
		if m.wants(b) {
			all = all.with(b.Entries)
		}
	}
	var explained []Explained
	for _, list := range []struct {
		name string
		of   func(Entries) []string
	}{
		{"users", func(e Entries) []string { return e.Users }},
		{fieldBackendRoles, func(e Entries) []string { return e.BackendRoles }},
		{"hosts", func(e Entries) []string { return e.Hosts }},
		{"and_backend_roles", func(e Entries) []string { return e.And }},
	} {
		for _, value := range list.of(all) {
			e := Explained{List: list.name, Value: value, Foreign: slices.Contains(list.of(foreign), value), Exists: slices.Contains(list.of(has), value)}
			for _, b := range bindings {
				if m.wants(b) && slices.Contains(list.of(b.Entries), value) {
					e.Bindings = append(e.Bindings, b.UID)
				}
			}
			explained = append(explained, e)
		}
	}
	return explained
}
