package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mappingSimulation models the role mappings on a server, with bindings and entries of other writers.
type mappingSimulation struct {
	actual   map[string]Entity
	roles    map[string]bool
	bindings map[string]RoleBinding
	// foreign holds the entries of other writers, by role.
	foreign map[string]MappingEntries
	// late holds actions without an answer that may still take effect.
	late []Action
	// forgotten means that the service does not know of these actions, because another leader sent them.
	forgotten bool
	// released holds the entries that a run has removed and that no binding has declared since, by role.
	released map[string]MappingEntries
}

// mayGive reports whether a late action may create a user entry.
func (w *mappingSimulation) mayGive(role, user string) bool {
	return slices.ContainsFunc(w.late, func(a Action) bool { return a.Name == role && slices.Contains(a.Body.stringListOf("users"), user) })
}

// mayOverwrite reports whether a late action on the role does more than append entries. It may then overwrite other clients.
func (w *mappingSimulation) mayOverwrite(role string) bool {
	return slices.ContainsFunc(w.late, func(a Action) bool {
		return a.Name == role && (a.Body == nil || a.Was == nil ||
			slices.ContainsFunc(a.EntryEdits(), func(e EntryEdit) bool { return !strings.HasSuffix(e.Path, "/-") }))
	})
}

func mapped(e MappingEntries) Entity {
	return Entity{Body: Body{"users": toAnySlice(e.Users), "backend_roles": toAnySlice(e.BackendRoles), "hosts": toAnySlice(e.Hosts), "and_backend_roles": toAnySlice(e.And)}}
}

// serve executes an action like the server. It returns false if the server refuses the action.
func (w *mappingSimulation) serve(a Action) bool {
	switch {
	case a.Body == nil:
		delete(w.actual, a.Name)
		return true
	case a.Was == nil:
		w.actual[a.Name] = Entity{Body: a.Body}
		return true
	}
	is, there := w.actual[a.Name]
	if !there {
		return false
	}
	patched := maps.Clone(is.Body)
	for _, edit := range a.EntryEdits() {
		field, place, single := strings.Cut(edit.Path, "/")
		list := slices.Clone(patched[field].([]any))
		at, err := strconv.Atoi(place)
		switch {
		case single && len(is.Body[field].([]any)) == 0: // The server omits empty lists.
			return false
		case !single:
			list = edit.Value.([]any)
		case place == "-":
			list = append(list, edit.Value)
		case err != nil || at > len(list) || edit.Op == "remove" && at == len(list):
			return false
		case edit.Op == "remove":
			list = slices.Delete(list, at, at+1)
		default:
			list = slices.Insert(list, at, edit.Value)
		}
		patched[field] = list
	}
	w.actual[a.Name] = Entity{Body: patched}
	return true
}

// apply executes the first upTo actions, one after the other. It reports whether the server took all of them.
func (w *mappingSimulation) apply(t *rapid.T, actions []Action, upTo int) bool {
	taken := true
	for i, a := range actions {
		if i >= upTo {
			break
		}
		before := w.actual[a.Name].MappingEntries()
		if a.Body != nil && !w.roles[a.Name] {
			t.Fatalf("mapping of role %s is written, which is not there", a.Name)
		}
		taken = w.serve(a) && taken
		after := w.actual[a.Name].MappingEntries()
		for uid, b := range w.bindings { // An entry that a binding gives before and after must never be missing.
			var gives MappingEntries
			switch {
			case b.Leaving:
			case b.Obstacle != nil: // The binding keeps its recorded entries.
				gives = b.Record[a.Name]
			case slices.Contains(b.Roles, a.Name):
				gives = b.Entries
			}
			for _, u := range gives.Users {
				if slices.Contains(before.Users, u) && !slices.Contains(after.Users, u) {
					t.Fatalf("binding %s gives %s to %s, which was taken away: %v", uid, a.Name, u, actions)
				}
			}
		}
	}
	return taken
}

// come ends up to n late actions. They take effect if comes is true.
func (w *mappingSimulation) come(comes bool, n int) {
	for _, a := range w.late[:min(n, len(w.late))] {
		if comes {
			w.serve(a)
		}
	}
	w.late = w.late[min(n, len(w.late)):]
}

// pass simulates one run of the service. It is killed after some actions, and the next action gets no answer if lost is
// true. meanwhile runs between the listing and the actions.
func (w *mappingSimulation) pass(t *rapid.T, killed int, lost bool, meanwhile func([]Action)) (again bool) {
	decide := func() MappingDecision {
		return DecideMappings(slices.Collect(maps.Values(w.bindings)), w.actual, w.roles, len(w.late) > 0 && !w.forgotten)
	}
	d := decide()
	for _, o := range d.Outcomes {
		if o.Drops || len(o.Unseen) > 0 { // An action of the previous leader may take effect.
			w.forgotten = false
		}
	}
	d = decide()
	for uid, o := range d.Outcomes {
		b := w.bindings[uid]
		b.Record = o.Before
		w.bindings[uid] = b
	}
	meanwhile(d.Actions)
	before := maps.Clone(w.actual)
	taken := w.apply(t, d.Actions, killed)
	if killed < len(d.Actions) {
		if lost {
			w.late, w.forgotten = append(w.late, d.Actions[killed]), false
		}
		return true
	}
	if !taken {
		return true
	}
	for _, a := range d.Actions {
		w.released[a.Name] = w.released[a.Name].union(before[a.Name].MappingEntries().minus(w.actual[a.Name].MappingEntries()))
	}
	for uid, o := range d.Outcomes {
		b := w.bindings[uid]
		if b.Record = o.After; b.Leaving && (len(w.late) == 0 || w.forgotten) {
			delete(w.bindings, uid)
		} else {
			w.bindings[uid] = b
		}
	}
	return d.Again
}

func TestDecideMappingsConvergesInRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &mappingSimulation{
			actual: map[string]Entity{}, roles: map[string]bool{"r0": true, "r1": true, "r2": true},
			bindings: map[string]RoleBinding{}, foreign: map[string]MappingEntries{}, released: map[string]MappingEntries{},
		}
		names := func(prefix, label string) []string {
			return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(prefix, rapid.IntRange(0, 2).Draw(t, "n")) }),
				0, 3, rapid.ID[string]).Draw(t, label)
		}
		outsider := func(role string) {
			names := []string{"x0", "x1", "x2"}
			for _, user := range w.released[role].Users { // The client adds an entry again.
				if !w.mayGive(role, user) {
					names = append(names, user)
				}
			}
			if w.mayOverwrite(role) {
				return
			}
			more := MappingEntries{Users: []string{rapid.SampledFrom(names).Draw(t, "outsider")}}
			w.foreign[role] = w.foreign[role].union(more)
			w.actual[role] = mapped(w.actual[role].MappingEntries().union(more))
		}
		nothing := func([]Action) {}
		outsiders := func(actions []Action) { // A list that is created, or a mapping that is removed, has no single entries.
			for _, a := range actions {
				if has := w.actual[a.Name].MappingEntries(); a.Was == nil || len(has.Users) == 0 {
					continue
				}
				if leaves := w.foreign[a.Name].Users; len(leaves) > 0 && rapid.Bool().Draw(t, "another client removes an entry") {
					out := MappingEntries{Users: leaves[:1]}
					w.actual[a.Name] = mapped(w.actual[a.Name].MappingEntries().minus(out))
					w.foreign[a.Name] = w.foreign[a.Name].minus(out)
				} else if rapid.Bool().Draw(t, "another client adds an entry") {
					outsider(a.Name)
				}
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			uid := fmt.Sprint("b", rapid.IntRange(0, 3).Draw(t, "binding"))
			b, there := w.bindings[uid]
			switch rapid.SampledFrom([]string{"write", "write", "delete", "obstacle", "outsider", "pass", "beside", "killed", "lost", "comes", "another leader"}).Draw(t, "step") {
			case "write":
				if b.Leaving {
					break
				}
				b.UID, b.Roles, b.Entries = uid, names("r", "roles"), MappingEntries{Users: names("u", "users"), BackendRoles: names("g", "groups")}
				if uid == "b0" { // If two bindings have different joint lists, one of them gets none.
					b.Entries.And = rapid.SampledFrom([][]string{nil, {"a", "b"}, {"c", "d"}}).Draw(t, "and")
				}
				w.bindings[uid] = b
				for _, role := range b.Roles {
					w.released[role] = w.released[role].minus(b.Entries)
				}
			case "obstacle":
				if b.Obstacle = rapid.SampledFrom([]*Verdict{nil, {Reason: "Obstacle"}}).Draw(t, "obstacle"); there {
					w.bindings[uid] = b
				}
			case "delete":
				if b.Leaving = true; there {
					w.bindings[uid] = b
				}
			case "outsider":
				outsider(fmt.Sprint("r", rapid.IntRange(0, 2).Draw(t, "role")))
			case "pass":
				w.pass(t, 1000, false, nothing)
			case "beside":
				w.pass(t, 1000, false, outsiders)
			case "killed":
				w.pass(t, rapid.IntRange(0, 2).Draw(t, "at"), false, nothing)
			case "lost":
				w.pass(t, rapid.IntRange(0, 2).Draw(t, "at"), true, nothing)
			case "another leader":
				w.forgotten = true
			case "comes":
				w.come(rapid.Bool().Draw(t, "comes"), rapid.IntRange(1, 2).Draw(t, "how many"))
			}
		}
		for uid, b := range w.bindings {
			b.Obstacle = nil
			w.bindings[uid] = b
		}
		w.come(rapid.Bool().Draw(t, "comes"), len(w.late))
		for passes := 0; w.pass(t, 1000, false, nothing); passes++ {
			if passes == 3 {
				t.Fatal("one pass after the other has something to do")
			}
		}
		for role := range w.roles {
			want := w.foreign[role]
			for _, b := range w.bindings {
				if slices.Contains(b.Roles, role) {
					want = want.union(b.Entries)
				}
			}
			if has := w.actual[role].MappingEntries(); !equalEntries(has, want) {
				t.Fatalf("role %s has %+v, want %+v", role, has, want)
			}
		}
		if d := DecideMappings(slices.Collect(maps.Values(w.bindings)), w.actual, w.roles, false); len(d.Actions) > 0 {
			t.Fatalf("in step, there is still to do %+v", d.Actions)
		}
	})
}

func TestDecideMappings(t *testing.T) {
	give := func(uid string, e MappingEntries, edit func(*RoleBinding)) RoleBinding {
		b := RoleBinding{UID: uid, Roles: []string{"logs"}, Entries: e}
		if edit != nil {
			edit(&b)
		}
		return b
	}
	recorded := func(e MappingEntries) func(*RoleBinding) {
		return func(b *RoleBinding) { b.Record = map[string]MappingEntries{"logs": e} }
	}
	leaving := func(e MappingEntries) func(*RoleBinding) {
		return func(b *RoleBinding) { recorded(e)(b); b.Leaving = true }
	}
	anna, both := MappingEntries{Users: []string{"anna"}}, MappingEntries{Users: []string{"anna", "ben"}}
	and := MappingEntries{And: []string{"a", "b"}}
	for name, c := range map[string]struct {
		bindings []RoleBinding
		has      MappingEntries
		noRole   bool
		// want is the mapping after the actions. gone means that no mapping is left.
		want   MappingEntries
		reason string
	}{
		"is given":                         {[]RoleBinding{give("1", anna, nil)}, MappingEntries{}, false, anna, Synced},
		"is there by others":               {[]RoleBinding{give("1", anna, nil)}, both, false, both, Synced},
		"is taken":                         {[]RoleBinding{give("1", anna, leaving(anna))}, both, false, MappingEntries{Users: []string{"ben"}}, Synced},
		"is of two, and one leaves":        {[]RoleBinding{give("1", anna, leaving(anna)), give("2", anna, nil)}, anna, false, anna, Synced},
		"others' stays":                    {[]RoleBinding{give("1", anna, leaving(MappingEntries{}))}, anna, false, anna, Synced},
		"the role is not there":            {[]RoleBinding{give("1", anna, nil)}, MappingEntries{}, true, MappingEntries{}, RoleMissing},
		"the role went, and all was ours":  {[]RoleBinding{give("1", anna, leaving(anna))}, anna, true, MappingEntries{}, Synced},
		"the role went, some is others'":   {[]RoleBinding{give("1", anna, leaving(anna))}, both, true, both, Synced},
		"all together are asked for":       {[]RoleBinding{give("1", and, nil)}, anna, false, MappingEntries{Users: anna.Users, And: and.And}, Synced},
		"others ask for others together":   {[]RoleBinding{give("1", and, nil)}, MappingEntries{And: []string{"a"}}, false, MappingEntries{And: []string{"a"}}, AndConflict},
		"none of those together is left":   {[]RoleBinding{give("1", and, leaving(and))}, and, false, MappingEntries{}, Synced},
		"something stands in its way":      {[]RoleBinding{give("1", MappingEntries{And: []string{"c"}}, func(b *RoleBinding) { recorded(and)(b); b.Obstacle = &Verdict{Reason: "Obstacle"} }), give("2", anna, nil)}, and, false, MappingEntries{Users: anna.Users, And: and.And}, "Obstacle"},
		"another list goes first":          {[]RoleBinding{give("1", MappingEntries{And: []string{"c"}}, recorded(and))}, and, false, MappingEntries{}, AndConflict},
		"others' together is never halved": {[]RoleBinding{give("1", MappingEntries{And: []string{"a"}}, leaving(MappingEntries{And: []string{"a"}}))}, and, false, and, Synced},
	} {
		t.Run(name, func(t *testing.T) {
			actual := map[string]Entity{}
			if !c.has.isEmpty() {
				actual["logs"] = mapped(c.has)
			}
			d := DecideMappings(c.bindings, actual, map[string]bool{"logs": !c.noRole}, false)
			for _, a := range d.Actions {
				if actual[a.Name] = (Entity{Body: a.Body}); a.Body == nil {
					delete(actual, a.Name)
				}
			}
			got, there := actual["logs"]
			if !equalEntries(got.MappingEntries(), c.want) || there == c.want.isEmpty() || d.Outcomes["1"].Reason != c.reason {
				t.Errorf("it has %+v, %+v; want %+v, %s", got.MappingEntries(), d.Outcomes["1"], c.want, c.reason)
			}
		})
	}
}

func TestDecideMappingsReportsWorstVerdict(t *testing.T) {
	guarded := Entity{Guarded: true}
	b := RoleBinding{UID: "1", Roles: []string{"another", "kibana_server", "nosuch"}, Entries: MappingEntries{Users: []string{"anna"}}}
	d := DecideMappings([]RoleBinding{b}, map[string]Entity{"kibana_server": guarded, "another": guarded}, map[string]bool{"kibana_server": true, "another": true}, false)
	if got := d.Outcomes["1"]; got.Reason != Reserved || len(got.Before)+len(got.After) != 0 {
		t.Errorf("got %+v, want %s and no record", got, Reserved)
	}
	b.Entries.And = []string{"a"}
	other := RoleBinding{UID: "0", Roles: b.Roles, Entries: MappingEntries{And: []string{"b"}}}
	d = DecideMappings([]RoleBinding{other, b}, map[string]Entity{}, map[string]bool{}, false)
	if got := d.Outcomes["1"]; got.Reason != AndConflict {
		t.Errorf("got %+v, want %s", got, AndConflict)
	}
}

// OpenSearch may reserve a mapping. Entries that must go then remain, and each binding that recorded them reports it.
func TestDecideMappingsReportsEntriesInReservedMapping(t *testing.T) {
	anna, both := MappingEntries{Users: []string{"anna"}}, MappingEntries{Users: []string{"anna", "ben"}}
	record := map[string]MappingEntries{"logs": both}
	for name, c := range map[string]struct {
		b      RoleBinding
		has    MappingEntries
		reason string
		// record is the record afterwards.
		record MappingEntries
	}{
		"of a deleted binding":             {RoleBinding{Leaving: true, Record: record}, both, Reserved, both},
		"of a binding without the role":    {RoleBinding{Record: record}, both, Reserved, both},
		"of a binding with fewer users":    {RoleBinding{Roles: []string{"logs"}, Entries: anna, Record: record}, both, Reserved, both},
		"none of a deleted binding":        {RoleBinding{Leaving: true, Record: record}, MappingEntries{Users: []string{"kim"}}, Synced, MappingEntries{}},
		"none of a binding that is new":    {RoleBinding{Roles: []string{"logs"}, Entries: anna}, MappingEntries{}, Reserved, MappingEntries{}},
		"all of a binding":                 {RoleBinding{Roles: []string{"logs"}, Entries: both, Record: record}, both, Synced, both},
		"of a binding elsewhere that goes": {RoleBinding{Leaving: true, Record: record, Elsewhere: true}, both, Synced, MappingEntries{}},
	} {
		t.Run(name, func(t *testing.T) {
			c.b.UID = "1"
			has := mapped(c.has)
			has.Guarded = true
			other := RoleBinding{UID: "2", Leaving: true, Record: map[string]MappingEntries{"logs": {Users: []string{"lee"}}}}
			d := DecideMappings([]RoleBinding{c.b, other}, map[string]Entity{"logs": has}, map[string]bool{"logs": true}, false)
			got := d.Outcomes["1"]
			if got.Reason != c.reason || !equalEntries(got.After["logs"], c.record) || len(d.Actions) > 0 || d.Outcomes["2"].Reason != Synced {
				t.Errorf("got %+v and %+v; want %s, record %+v", got, d.Actions, c.reason, c.record)
			}
		})
	}
}

func TestDecideMappingsKeepsEntriesOfOtherClusterObjects(t *testing.T) {
	anna, both := MappingEntries{Users: []string{"anna"}}, MappingEntries{Users: []string{"anna", "ben"}}
	logs := func(e MappingEntries) map[string]MappingEntries { return map[string]MappingEntries{"logs": e} }
	leaves := RoleBinding{UID: "1", Leaving: true, Record: logs(anna)}
	stays := RoleBinding{UID: "2", Roles: []string{"logs"}, Entries: both, Record: logs(both), Elsewhere: true}
	edited := func(edit func(*RoleBinding)) RoleBinding {
		b := stays
		edit(&b)
		return b
	}
	for name, c := range map[string]struct {
		bindings  []RoleBinding
		has, want MappingEntries
		noRole    bool
	}{
		"alone":                            {[]RoleBinding{leaves}, anna, MappingEntries{}, false},
		"beside another":                   {[]RoleBinding{leaves, stays}, both, both, false},
		"of another alone":                 {[]RoleBinding{edited(func(b *RoleBinding) { b.Leaving = true })}, both, both, false},
		"both leave":                       {[]RoleBinding{leaves, edited(func(b *RoleBinding) { b.Leaving = true })}, both, MappingEntries{}, false},
		"both leave a missing role":        {[]RoleBinding{leaves, edited(func(b *RoleBinding) { b.Leaving = true })}, both, MappingEntries{}, true},
		"one leaves a missing role":        {[]RoleBinding{leaves, stays}, both, MappingEntries{}, true},
		"one here leaves a missing role":   {[]RoleBinding{leaves, edited(func(b *RoleBinding) { b.Elsewhere = false })}, both, MappingEntries{}, true},
		"a missing role with an outsider":  {[]RoleBinding{leaves, stays}, both.union(MappingEntries{Hosts: []string{"h"}}), both.union(MappingEntries{Hosts: []string{"h"}}), true},
		"nothing leaves a missing role":    {[]RoleBinding{edited(func(b *RoleBinding) { b.Elsewhere = false }), stays}, both, both, true},
		"another has yet to add an entry":  {[]RoleBinding{leaves, edited(func(b *RoleBinding) { b.Record = logs(anna) })}, anna, anna, false},
		"another drops an entry":           {[]RoleBinding{leaves, edited(func(b *RoleBinding) { b.Entries = anna })}, both, anna, false},
		"another drops the role":           {[]RoleBinding{leaves, edited(func(b *RoleBinding) { b.Roles = nil })}, both, MappingEntries{}, false},
		"another drops an entry, hindered": {[]RoleBinding{leaves, edited(func(b *RoleBinding) { b.Entries, b.Obstacle = anna, &Verdict{} })}, both, both, false},
	} {
		t.Run(name, func(t *testing.T) {
			actual := map[string]Entity{"logs": mapped(c.has)}
			for _, a := range DecideMappings(c.bindings, actual, map[string]bool{"logs": !c.noRole}, false).Actions {
				actual[a.Name] = Entity{Body: a.Body}
			}
			if got := actual["logs"].MappingEntries(); !equalEntries(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestDriftedFieldsOfSyncedObject(t *testing.T) {
	binding := RoleBinding{UID: "1", Roles: []string{"logs"}, Entries: MappingEntries{Users: []string{"anna"}}, Record: map[string]MappingEntries{"logs": {Users: []string{"anna"}}}}
	mapping := func(edit func(*RoleBinding)) []Action {
		b := binding
		edit(&b)
		return DecideMappings([]RoleBinding{b}, map[string]Entity{}, map[string]bool{"logs": true}, false).Actions
	}
	users := func(has map[string]Entity, edit func(*DeclaredObject)) []Action {
		return DecideObjects(Users, []DeclaredObject{user("u", edit)}, has).Actions
	}
	is := func(attributes map[string]any, roles ...any) map[string]Entity {
		return map[string]Entity{"anna": listedUser(attributes, roles...)}
	}
	inStep := func(o *DeclaredObject) { o.Synced, o.InStep = true, true }
	for name, c := range map[string]struct {
		actions []Action
		want    string
	}{
		"a mapping that was emptied":     {mapping(func(b *RoleBinding) { b.InStep = true }), "[users]"},
		"a mapping of a new binding":     {mapping(func(*RoleBinding) {}), "[]"},
		"a user that was deleted":        {users(nil, inStep), "[attributes backend_roles]"},
		"a user that got a backend role": {users(is(owned("u", "tag"), "a", "b", "power"), inStep), "[backend_roles]"},
		"a user with a new password":     {users(is(owned("u", "old"), "a", "b"), inStep), "[]"},
		"a user that was edited":         {users(is(owned("u", "tag"), "a"), func(o *DeclaredObject) { o.Synced = true }), "[]"},
	} {
		if len(c.actions) != 1 || fmt.Sprint(c.actions[0].Drift) != c.want {
			t.Errorf("%s: got %+v, want drift %s", name, c.actions, c.want)
		}
	}
}

func TestDecideMappingsRequiresApprovalForUncheckedRole(t *testing.T) {
	anna, both := MappingEntries{Users: []string{"anna"}}, MappingEntries{Users: []string{"anna", "ben"}}
	pair := MappingEntries{And: []string{"a", "b"}}
	for name, c := range map[string]struct {
		b          RoleBinding
		has, want  MappingEntries
		reason     string
		undeclared bool
	}{
		"a new entry":                {RoleBinding{Entries: anna}, MappingEntries{}, MappingEntries{}, BindNeeded, false},
		"a new entry with approval":  {RoleBinding{Entries: anna, Approved: true}, MappingEntries{}, anna, Synced, false},
		"what it has given":          {RoleBinding{Entries: anna, Record: map[string]MappingEntries{"company": anna}}, anna, anna, Synced, false},
		"what it has given and more": {RoleBinding{Entries: both, Record: map[string]MappingEntries{"company": anna}}, anna, anna, BindNeeded, false},
		"less than it has given":     {RoleBinding{Entries: anna, Record: map[string]MappingEntries{"company": both}}, both, anna, Synced, false},
		"another joint list":         {RoleBinding{Entries: MappingEntries{And: []string{"a"}}, Record: map[string]MappingEntries{"company": pair}}, pair, MappingEntries{}, BindNeeded, false},
		"a deleted binding":          {RoleBinding{Entries: both, Leaving: true, Record: map[string]MappingEntries{"company": anna}}, anna, MappingEntries{}, Synced, false},
		"a role that it drops":       {RoleBinding{Entries: both, Record: map[string]MappingEntries{"company": anna}}, anna, MappingEntries{}, Synced, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.b.UID, c.b.Undecided, c.b.Approval = "1", map[string]bool{"company": true}, "approval-of-1"
			if !c.undeclared {
				c.b.Roles = []string{"company"}
			}
			actual := map[string]Entity{"company": mapped(c.has)}
			d := DecideMappings([]RoleBinding{c.b}, actual, map[string]bool{"company": true}, false)
			for _, a := range d.Actions {
				actual[a.Name] = Entity{Body: a.Body}
			}
			got := d.Outcomes["1"]
			if !equalEntries(actual["company"].MappingEntries(), c.want) || got.Reason != c.reason {
				t.Errorf("got %+v, %+v; want %+v, %s", actual["company"].MappingEntries(), got.Verdict, c.want, c.reason)
			}
			if c.reason == BindNeeded && !strings.Contains(got.Message, `"company", which OpenSearch protects; annotate the object with opensearch.org/bind=approval-of-1`) {
				t.Errorf("got the message %q, want the role and the annotation", got.Message)
			}
		})
	}
}
