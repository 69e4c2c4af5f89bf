package plan

import "testing"

// A recorded change without an answer may take effect when the binding no longer wants it.
func TestDecideMappingsKeepsRecordWhileUncertain(t *testing.T) {
	was, is := MappingEntries{Users: []string{"anna", "ben"}, And: []string{"a", "b"}}, MappingEntries{Users: []string{"anna"}}
	next := MappingEntries{Users: is.Users, And: []string{"c"}}
	for name, c := range map[string]struct {
		b         RoleBinding
		has       MappingEntries
		contested bool
		// want is the mapping after the actions, and record is the record after them.
		want, record MappingEntries
		reason       string
		// doubt means that an earlier write may still take effect.
		doubt bool
	}{
		"what is wanted is not there":       {RoleBinding{Entries: is, Record: map[string]MappingEntries{"logs": is}}, MappingEntries{}, false, is, is, Synced, true},
		"what is wanted is there":           {RoleBinding{Entries: is, Record: map[string]MappingEntries{"logs": is}}, is, false, is, is, Synced, false},
		"nothing is":                        {RoleBinding{Entries: is, Record: map[string]MappingEntries{"logs": was}}, is, false, is, is, Synced, true},
		"some entries are":                  {RoleBinding{Entries: is, Record: map[string]MappingEntries{"logs": was}}, is, true, is, was, Synced, true},
		"they are there, and go":            {RoleBinding{Entries: is, Record: map[string]MappingEntries{"logs": was}}, was, true, is, is, Synced, true},
		"a list is that may come":           {RoleBinding{Entries: next, Record: map[string]MappingEntries{"logs": was}}, is, true, is, was, Writing, true},
		"the list that may come is wanted":  {RoleBinding{Entries: was, Record: map[string]MappingEntries{"logs": was}}, is, true, is, was, Writing, true},
		"the mapping that may come":         {RoleBinding{Entries: is, Record: map[string]MappingEntries{"logs": is}}, MappingEntries{}, true, MappingEntries{}, is, Writing, true},
		"whose binding is new":              {RoleBinding{Entries: was}, is, true, is, MappingEntries{}, Writing, false},
		"whose binding leaves":              {RoleBinding{Leaving: true, Record: map[string]MappingEntries{"logs": is}}, is, true, MappingEntries{}, MappingEntries{}, Synced, true},
		"whose binding leaves, and some":    {RoleBinding{Leaving: true, Record: map[string]MappingEntries{"logs": was}}, is, true, MappingEntries{}, MappingEntries{Users: []string{"ben"}, And: was.And}, Synced, true},
		"whose binding leaves with nothing": {RoleBinding{Leaving: true, Record: map[string]MappingEntries{"logs": is}}, MappingEntries{}, false, MappingEntries{}, MappingEntries{}, Synced, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.b.UID, c.b.Roles = "1", []string{"logs"}
			actual := map[string]Entity{}
			if !c.has.isEmpty() {
				actual["logs"] = mapped(c.has)
			}
			d := DecideMappings([]RoleBinding{c.b}, actual, map[string]bool{"logs": true}, c.contested)
			for _, a := range d.Actions {
				actual[a.Name] = Entity{Body: a.Body}
			}
			got, is := actual["logs"].MappingEntries(), d.Outcomes["1"]
			doubt := is.Drops || len(is.Unseen) > 0
			if !equalEntries(got, c.want) || !equalEntries(is.After["logs"], c.record) || is.Reason != c.reason || doubt != c.doubt {
				t.Errorf("got mapping %+v and %+v; want %+v, record %+v, %s, doubt %t", got, is, c.want, c.record, c.reason, c.doubt)
			}
		})
	}
}

// The server has listed the entry, so no earlier write can create it again. An entry that returns belongs to another client.
func TestDecideMappingsLeavesReturnedEntryWhileUncertain(t *testing.T) {
	both := MappingEntries{Users: []string{"anna", "ben"}}
	for name, b := range map[string]RoleBinding{
		"of a deleted binding":   {Leaving: true},
		"of a reduced binding":   {Roles: []string{"logs"}},
		"removed by another run": {Leaving: true},
		"with one still unseen":  {Leaving: true, Record: map[string]MappingEntries{"logs": {Users: []string{"anna", "ben", "lee"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if b.UID = "1"; b.Record == nil {
				b.Record = map[string]MappingEntries{"logs": both}
			}
			roles := map[string]bool{"logs": true}
			d := DecideMappings([]RoleBinding{b}, map[string]Entity{"logs": mapped(both)}, roles, true)
			if len(d.Actions) != 1 || d.Actions[0].Body != nil {
				t.Fatalf("got %+v, want a removal", d.Actions)
			}
			if name == "removed by another run" { // Its result is not in the record.
				b.Seen = d.Outcomes["1"].Seen
				d = DecideMappings([]RoleBinding{b}, nil, roles, true)
			}
			b.Record = d.Outcomes["1"].After
			if d := DecideMappings([]RoleBinding{b}, map[string]Entity{"logs": mapped(both)}, roles, true); len(d.Actions) > 0 {
				t.Errorf("got %+v, want no action: another client has added the entries again", d.Actions)
			}
		})
	}
}
