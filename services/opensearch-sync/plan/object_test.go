package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
)

// user returns an object that declares a user. thing returns a user as the server lists it.
func user(uid string, edit func(*DeclaredObject)) DeclaredObject {
	o := DeclaredObject{UID: uid, Name: "anna", Created: time.Unix(1, 0), Body: Body{"backend_roles": []any{"a", "b"}, "attributes": map[string]any{}}, Tag: "tag"}
	if edit != nil {
		edit(&o)
	}
	return o
}

func listedUser(attributes map[string]any, roles ...any) Entity {
	return NewEntity(map[string]any{"backend_roles": roles, "attributes": attributes, "hash": "", "reserved": false, "opendistro_security_roles": []any{}})
}

func owned(uid, tag string) map[string]any {
	return map[string]any{"k8s-uid": uid, "entail-password": tag}
}

func secretless(o *DeclaredObject) { o.Tag, o.PasswordMissing = "", &Verdict{Reason: "SecretMissing"} }

func TestDecideObjectsOfUsers(t *testing.T) {
	operated := map[string]any{"k8s-uid": "u", "secret-version": "7"}
	reserved := listedUser(nil)
	reserved.Guarded = true
	for name, c := range map[string]struct {
		objects []DeclaredObject
		has     Entity
		none    bool
		// want is "put" for a write with a password, "add" for one without, "remove", or "" for none.
		want, reason string
	}{
		"is not there":               {objects: []DeclaredObject{user("u", nil)}, none: true, want: "put", reason: Synced},
		"is as it should be":         {objects: []DeclaredObject{user("u", nil)}, has: listedUser(owned("u", "tag"), "b", "a"), reason: Synced},
		"has other backend roles":    {objects: []DeclaredObject{user("u", nil)}, has: listedUser(owned("u", "tag"), "b"), want: "add", reason: Synced},
		"has another password":       {objects: []DeclaredObject{user("u", nil)}, has: listedUser(owned("u", "old"), "a", "b"), want: "put", reason: Synced},
		"is of others":               {objects: []DeclaredObject{user("u", nil)}, has: listedUser(nil, "b", "a"), reason: Foreign},
		"is of another object":       {objects: []DeclaredObject{user("u", nil)}, has: listedUser(owned("v", "tag"), "b", "a"), reason: Foreign},
		"is adopted":                 {objects: []DeclaredObject{user("u", func(o *DeclaredObject) { o.Adopt = true })}, has: listedUser(nil, "b", "a"), want: "put", reason: Synced},
		"is reserved":                {objects: []DeclaredObject{user("u", func(o *DeclaredObject) { o.Adopt = true })}, has: reserved, reason: Reserved},
		"was migrated":               {objects: []DeclaredObject{user("u", func(o *DeclaredObject) { o.Source = "old" })}, has: listedUser(owned("old", "x"), "a", "b"), want: "put", reason: Synced},
		"claims a living one's":      {objects: []DeclaredObject{user("u", func(o *DeclaredObject) { o.Source = "v" }), user("v", func(o *DeclaredObject) { o.Name = "ben" })}, has: listedUser(owned("v", "x"), "a", "b"), reason: Foreign},
		"lacks its Secret":           {objects: []DeclaredObject{user("u", secretless)}, none: true, reason: "SecretMissing"},
		"lost its Secret":            {objects: []DeclaredObject{user("u", secretless)}, has: listedUser(owned("u", "tag"), "a", "b"), reason: "SecretMissing"},
		"loses a role after it":      {objects: []DeclaredObject{user("u", secretless)}, has: listedUser(owned("u", "tag"), "a", "b", "power"), want: "add", reason: "SecretMissing"},
		"is of others, and lacks it": {objects: []DeclaredObject{user("u", func(o *DeclaredObject) { secretless(o); o.Adopt = true })}, has: listedUser(nil, "power"), reason: "SecretMissing"},
		"comes from the operator":    {objects: []DeclaredObject{user("u", nil)}, has: listedUser(operated, "a", "b"), want: "put", reason: Synced},
		"is written by the operator": {objects: []DeclaredObject{user("u", func(o *DeclaredObject) { o.Synced = true })}, has: listedUser(operated, "a", "b"), reason: OtherWriter},
		"leaves":                     {objects: []DeclaredObject{user("u", func(o *DeclaredObject) { o.Leaving = true })}, has: listedUser(owned("u", "tag")), want: "remove", reason: Synced},
		"leaves what is of others":   {objects: []DeclaredObject{user("u", func(o *DeclaredObject) { o.Leaving = true })}, has: listedUser(nil), reason: Synced},
		"leaves what is gone":        {objects: []DeclaredObject{user("u", func(o *DeclaredObject) { o.Leaving = true })}, none: true, reason: Synced},
		"was deleted by force":       {objects: []DeclaredObject{user("u", withoutObject)}, has: listedUser(owned("u", "tag")), want: "remove", reason: Synced},
		"took another's name":        {objects: []DeclaredObject{user("u", withoutObject)}, has: listedUser(owned("v", "tag")), reason: Synced},
		"follows one deleted so":     {objects: []DeclaredObject{user("v", withoutObject), user("u", nil)}, has: listedUser(owned("v", "x"), "a", "b"), want: "put", reason: Synced},
		"follows, without a Secret":  {objects: []DeclaredObject{user("v", withoutObject), user("u", secretless)}, has: listedUser(owned("v", "x")), want: "remove", reason: NameTaken},
		"leaves to a reserved one":   {objects: []DeclaredObject{user("u", func(o *DeclaredObject) { o.Leaving = true })}, has: reserved, reason: Synced},
	} {
		t.Run(name, func(t *testing.T) {
			actual := map[string]Entity{"anna": c.has, "other": listedUser(nil)}
			if c.none {
				delete(actual, "anna")
			}
			d := DecideObjects(Users, c.objects, actual)
			if got := verbs(d.Actions, "anna"); got != c.want || d.Outcomes["u"].Reason != c.reason {
				t.Errorf("it is %q, %+v; want %q, %s", got, d.Outcomes["u"], c.want, c.reason)
			}
		})
	}
}

// verbs returns the actions on a name in this notation.
func verbs(actions []Action, name string) (all string) {
	for _, a := range actions {
		switch {
		case a.Name != name:
		case a.Body == nil:
			all += "remove"
		case a.Password:
			all += "put"
		default:
			all += "add"
		}
	}
	return all
}

// withoutObject marks an object as deleted by force.
func withoutObject(o *DeclaredObject) { o.Leaving, o.Gone = true, true }

func TestDecideObjectsOfRoles(t *testing.T) {
	role := func(edit func(*DeclaredObject)) []DeclaredObject {
		o := DeclaredObject{UID: "u", Name: "logs", Body: Body{"cluster_permissions": []any{"x"}}}
		edit(&o)
		return []DeclaredObject{o}
	}
	same := NewEntity(map[string]any{"cluster_permissions": []any{"x"}, "index_permissions": []any{}, "static": false})
	static := NewEntity(map[string]any{"cluster_permissions": []any{"y"}, "static": true})
	for name, c := range map[string]struct {
		objects      []DeclaredObject
		has          *Entity
		want, reason string
		existing     *bool
	}{
		"is new":                {role(func(*DeclaredObject) {}), nil, "add", Synced, new(false)},
		"was there":             {role(func(*DeclaredObject) {}), &same, "", Exists, new(true)},
		"was there, and is not": {role(func(o *DeclaredObject) { o.Existing = new(true) }), nil, "add", Synced, new(false)},
		"was there, is adopted": {role(func(o *DeclaredObject) { o.Existing, o.Adopt = new(true), true }), &same, "", Synced, new(false)},
		"is in step":            {role(func(o *DeclaredObject) { o.Existing = new(false) }), &same, "", Synced, new(false)},
		"was edited":            {role(func(o *DeclaredObject) { o.Existing, o.Body = new(false), Body{"cluster_permissions": []any{"z"}} }), &same, "add", Synced, new(false)},
		"was wiped":             {role(func(o *DeclaredObject) { o.Existing = new(false) }), nil, "add", Synced, new(false)},
		"is static":             {role(func(o *DeclaredObject) { o.Existing, o.Adopt = new(false), true }), &static, "", Reserved, new(true)},
		"leaves":                {role(func(o *DeclaredObject) { o.Existing, o.Leaving = new(false), true }), &same, "remove", Synced, nil},
		"leaves another's":      {role(func(o *DeclaredObject) { o.Existing, o.Leaving = new(true), true }), &same, "", Synced, nil},
		"leaves, never written": {role(func(o *DeclaredObject) { o.Leaving = true }), &same, "", Synced, nil},
		"gone by force":         {role(func(o *DeclaredObject) { withoutObject(o); o.Existing = new(false) }), &same, "remove", Synced, nil},
		"gone, and another's": {role(func(o *DeclaredObject) {
			withoutObject(o)
			o.Existing, o.Body = new(false), Body{"cluster_permissions": []any{"z"}}
		}), &same, "", Synced, nil},
		"gone, never written":   {role(withoutObject), &same, "", Synced, nil},
		"follows one gone":      {append(role(func(*DeclaredObject) {}), withoutObjects(new(false))...), &same, "", Synced, new(false)},
		"follows a foreign one": {append(role(func(*DeclaredObject) {}), withoutObjects(new(true))...), &same, "", Exists, new(true)},
		"leaves a static one":   {role(func(o *DeclaredObject) { o.Existing, o.Leaving = new(false), true }), &static, "", Synced, nil},
	} {
		t.Run(name, func(t *testing.T) {
			actual := map[string]Entity{"other": same}
			if c.has != nil {
				actual["logs"] = *c.has
			}
			d := DecideObjects(Roles, c.objects, actual)
			got := d.Outcomes["u"]
			if verbs(d.Actions, "logs") != c.want || got.Reason != c.reason || (got.Existing == nil) != (c.existing == nil) ||
				c.existing != nil && *got.Existing != *c.existing {
				t.Errorf("it is %q, %+v; want %q, %s", verbs(d.Actions, "logs"), got, c.want, c.reason)
			}
		})
	}
}

func TestDecideObjectsKeepsDeletedObjectWhileWriteIsUncertain(t *testing.T) {
	leaving := DeclaredObject{UID: "u", Name: "logs", Leaving: true}
	recorded := leaving
	recorded.Existing = new(false)
	forced, forcedRole, live := leaving, recorded, recorded
	withoutObject(&forced)
	withoutObject(&forcedRole)
	forcedRole.Body, live.Body, live.Leaving = Body{"cluster_permissions": []any{"x"}}, Body{}, false
	there := NewEntity(map[string]any{"cluster_permissions": []any{"x"}})
	for name, c := range map[string]struct {
		kind EntityKind
		o    DeclaredObject
		has  map[string]Entity
		want bool
	}{
		"a user":                        {Users, leaving, nil, true},
		"a user who was there":          {Users, leaving, map[string]Entity{"logs": there}, false},
		"a user who is gone":            {Users, forced, nil, true},
		"a user who stays":              {Users, DeclaredObject{UID: "u", Name: "logs", Body: Body{}}, nil, false},
		"a role":                        {Roles, recorded, nil, true},
		"a role that was there":         {Roles, recorded, map[string]Entity{"logs": there}, true},
		"a role that was there, forced": {Roles, forcedRole, map[string]Entity{"logs": there}, false},
		"a role that stays":             {Roles, live, nil, true},
		"a role that stays, and is":     {Roles, live, map[string]Entity{"logs": there}, false},
		"a role that is new":            {Roles, DeclaredObject{UID: "u", Name: "logs", Body: Body{}}, nil, false},
		"a role that was never written": {Roles, leaving, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if d := DecideObjects(c.kind, []DeclaredObject{c.o}, c.has); d.Outcomes["u"].Unseen != c.want {
				t.Errorf("unseen is %t", d.Outcomes["u"].Unseen)
			}
		})
	}
}

func withoutObjects(existing *bool) []DeclaredObject {
	return []DeclaredObject{{UID: "v", Name: "logs", Body: Body{"cluster_permissions": []any{"x"}}, Leaving: true, Gone: true, Existing: existing}}
}

func TestDecideObjectsPatchesUserWithoutPasswordChange(t *testing.T) {
	d := DecideObjects(Users, []DeclaredObject{user("u", nil)}, map[string]Entity{"anna": listedUser(owned("u", "tag"), "b")})
	if len(d.Actions) != 1 || !slices.Equal(d.Actions[0].Fields, []string{"backend_roles"}) || d.Actions[0].Password {
		t.Errorf("to do is %+v", d.Actions)
	}
	if d = DecideObjects(Users, []DeclaredObject{user("u", nil)}, nil); len(d.Actions) != 1 || d.Actions[0].Fields != nil || !d.Actions[0].Password {
		t.Errorf("of a new one, to do is %+v", d.Actions)
	}
}

func TestDecideObjectsGivesNameToOneObject(t *testing.T) {
	first, second := user("a", nil), user("b", func(o *DeclaredObject) { o.Created = time.Unix(2, 0) })
	d := DecideObjects(Users, []DeclaredObject{second, first}, nil)
	if verbs(d.Actions, "anna") != "put" || d.Actions[0].For[0] != "a" || d.Outcomes["b"].Reason != NameTaken {
		t.Errorf("both are new: %+v", d)
	}
	has := map[string]Entity{"anna": listedUser(owned("b", "tag"), "a", "b")}
	if d = DecideObjects(Users, []DeclaredObject{second, first}, has); len(d.Actions) > 0 || d.Outcomes["a"].Reason != NameTaken {
		t.Errorf("the younger has it: %+v", d)
	}
	second.Leaving = true
	if d = DecideObjects(Users, []DeclaredObject{second, first}, has); verbs(d.Actions, "anna") != "remove" || d.Outcomes["a"].State != opensearchv1.Pending || !d.Again {
		t.Errorf("the younger leaves: %+v", d)
	}
}

// Two cluster objects can lead to one server. If another client deletes an entity, only its owner creates it again.
func TestObjectsOfTwoClusterObjectsDoNotOverwriteEachOther(t *testing.T) {
	red, blue := Body{fieldDescription: "red"}, Body{fieldDescription: "blue"}
	object := func(uid string, existing *bool, edit func(*DeclaredObject)) DeclaredObject {
		o := DeclaredObject{UID: uid, Name: "logs", Existing: existing, Body: Body{fieldDescription: map[string]string{"a": "red", "b": "blue"}[uid]}}
		o.Created = map[string]time.Time{"a": time.Unix(1, 0), "b": time.Unix(2, 0)}[uid]
		if edit != nil {
			edit(&o)
		}
		return o
	}
	adopts, leaves := func(o *DeclaredObject) { o.Adopt = true }, func(o *DeclaredObject) { o.Leaving = true }
	owner := object("a", new(false), func(o *DeclaredObject) { o.Elsewhere = true })
	younger := object("b", new(false), func(o *DeclaredObject) { o.Elsewhere = true })
	for name, c := range map[string]struct {
		here, elsewhere DeclaredObject
		has             Body
		verbs, reason   string
	}{
		"the other's was deleted":                  {object("b", new(true), nil), owner, nil, "", NameTaken},
		"a new one, and the other's was deleted":   {object("b", nil, nil), owner, nil, "", NameTaken},
		"the other's exists":                       {object("b", new(true), nil), owner, red, "", Exists},
		"the other's is to be adopted":             {object("b", new(true), adopts), owner, red, "", NameTaken},
		"both claim it, and the other is older":    {object("b", new(false), nil), owner, red, "", NameTaken},
		"both claim it, and the other is younger":  {object("a", new(false), nil), younger, blue, "add", Synced},
		"both claim it, deleted, this is older":    {object("a", new(false), nil), younger, nil, "add", Synced},
		"both claim it, and this one is deleted":   {object("b", new(false), leaves), owner, red, "", Synced},
		"this one's, and it is deleted":            {object("a", new(false), leaves), object("b", new(true), nil), red, "remove", Synced},
		"this one's was deleted by another client": {object("a", new(false), nil), object("c", nil, leaves), nil, "add", Synced},
	} {
		t.Run(name, func(t *testing.T) {
			actual := map[string]Entity{}
			if c.has != nil {
				actual["logs"] = NewEntity(c.has)
			}
			objects := []DeclaredObject{c.here}
			if c.elsewhere.Elsewhere {
				objects = append(objects, c.elsewhere)
			}
			d := DecideObjects(Tenants, objects, actual)
			if got := d.Outcomes[c.here.UID].Reason; got != c.reason || verbs(d.Actions, "logs") != c.verbs || len(d.Outcomes) != 1 {
				t.Errorf("got %q and %q, %v; want %q and %q", verbs(d.Actions, "logs"), got, d.Outcomes, c.verbs, c.reason)
			}
		})
	}
	mine := user("u", func(o *DeclaredObject) { o.Adopt = true })
	theirs := user("v", func(o *DeclaredObject) { o.Elsewhere, o.Synced, o.Created = true, true, time.Unix(2, 0) })
	for _, has := range []map[string]Entity{nil, {"anna": listedUser(owned("v", "tag"))}} {
		if d := DecideObjects(Users, []DeclaredObject{mine, theirs}, has); len(d.Actions) > 0 || d.Outcomes["u"].Reason != NameTaken {
			t.Errorf("got %+v for a user of another cluster object", d)
		}
	}
}

func TestSplitIntoRequestsBoundsBatches(t *testing.T) {
	var actions []Action
	for i := range 501 {
		actions = append(actions, Action{Name: string(rune('a' + i%26)), Password: i == 0})
	}
	for kind, want := range map[EntityKind][]int{Users: {200, 200, 100}, Roles: {500}, Mappings: {50, 50, 50, 50, 50, 50, 50, 50, 50, 50}} {
		alone, batches := SplitIntoRequests(kind, actions)
		var sizes []int
		for _, b := range batches {
			sizes = append(sizes, len(b))
		}
		if len(alone) != 1 || !slices.Equal(sizes, want) {
			t.Errorf("%s: %d alone, %v; want %v", kind, len(alone), sizes, want)
		}
	}
	large := Body{"cluster_permissions": toAnySlice([]string{strings.Repeat("x", maxRequest/3)})}
	_, batches := SplitIntoRequests(Roles, []Action{{Name: "a", Body: large}, {Name: "b", Body: large}, {Name: "c", Body: large}, {Name: "d"}})
	if len(batches) != 2 || len(batches[0]) != 2 {
		t.Errorf("large roles are in %d requests, the first of %d; want 2 of 2", len(batches), len(batches[0]))
	}
}

func TestPasswordTagDependsOnPasswordObjectAndKey(t *testing.T) {
	tags := []string{PasswordTag([]byte("k"), "u", "p"), PasswordTag([]byte("k"), "u", "q"), PasswordTag([]byte("k"), "v", "p"), PasswordTag([]byte("l"), "u", "p")}
	for _, tag := range tags {
		if len(tag) != 32 {
			t.Errorf("%s is not of 128 bits", tag)
		}
	}
	if slices.Sort(tags); len(slices.Compact(tags)) != 4 {
		t.Errorf("some are the same: %v", tags)
	}
}

func TestPlanObjectsLetsAdopterComeFirst(t *testing.T) {
	for kind, has := range map[EntityKind]Entity{Users: listedUser(nil, "power"), Tenants: NewEntity(map[string]any{"description": "theirs"})} {
		older := user("older", nil)
		younger := user("younger", func(o *DeclaredObject) { o.Adopt, o.Created = true, older.Created.Add(time.Hour) })
		if kind == Tenants {
			older.Body, younger.Body = Body{"description": "ours"}, Body{"description": "ours"}
		}
		d := DecideObjects(kind, []DeclaredObject{older, younger}, map[string]Entity{"anna": has})
		if d.Outcomes["younger"].Reason != Synced || d.Outcomes["older"].Reason != NameTaken || len(d.Actions) != 1 {
			t.Errorf("%s: got %+v; want the adopter to take over the entity", kind, d)
		}
		if d = DecideObjects(kind, []DeclaredObject{older, younger}, nil); d.Outcomes["older"].Reason != Synced || d.Outcomes["younger"].Reason != NameTaken {
			t.Errorf("%s: got %+v; want the older object to create the entity", kind, d)
		}
	}
}

// A late write may create an earlier content. The name belongs to an object until the object is gone.
func TestDecideObjectsRemovesEarlierContentOfDeletedObject(t *testing.T) {
	leaving := DeclaredObject{UID: "1", Name: "anna", Leaving: true, Existing: new(false), Body: Body{"description": "now"}}
	forced, heir, hindered := leaving, leaving, leaving
	forced.Gone = true
	heir.UID, heir.Leaving = "2", false
	hindered.UID, hindered.Leaving, hindered.Obstacle = "2", false, new(failedVerdict(Invalid, ""))
	for name, c := range map[string]struct {
		objects []DeclaredObject
		want    string
	}{
		"held":                              {[]DeclaredObject{leaving}, "remove"},
		"gone by force":                     {[]DeclaredObject{forced}, ""},
		"held, and another one has written": {[]DeclaredObject{leaving, heir}, "add"},
		"held, and the other one may not":   {[]DeclaredObject{leaving, hindered}, "remove"},
	} {
		t.Run(name, func(t *testing.T) {
			actual := map[string]Entity{"anna": NewEntity(map[string]any{"description": "earlier"})}
			if d := DecideObjects(Tenants, c.objects, actual); verbs(d.Actions, "anna") != c.want {
				t.Errorf("got %+v, want %q", d.Actions, c.want)
			}
		})
	}
}

// OpenSearch may reserve what an object has made. Its deletion must not be reported as done.
func TestDecideObjectsReportsReservedEntityOfDeletedObject(t *testing.T) {
	role := DeclaredObject{UID: "u", Name: "anna", Leaving: true, Existing: new(false), Body: Body{"cluster_permissions": []any{"x"}}}
	reserved := func(e Entity) Entity { e.Guarded = true; return e }
	for name, c := range map[string]struct {
		kind EntityKind
		o    DeclaredObject
		has  Entity
		want string
	}{
		"a role":                 {Roles, role, reserved(Entity{Body: role.Body}), Reserved},
		"a role that was edited": {Roles, role, reserved(Entity{Body: Body{"cluster_permissions": []any{"y"}}}), Reserved},
		"a static role":          {Roles, role, reserved(Entity{Body: role.Body, Static: true}), Synced},
		"a user":                 {Users, user("u", func(o *DeclaredObject) { o.Leaving = true }), reserved(listedUser(owned("u", "tag"))), Reserved},
		"a user of another":      {Users, user("u", func(o *DeclaredObject) { o.Leaving = true }), reserved(listedUser(owned("v", "tag"))), Synced},
	} {
		t.Run(name, func(t *testing.T) {
			d := DecideObjects(c.kind, []DeclaredObject{c.o}, map[string]Entity{"anna": c.has})
			if got := d.Outcomes["u"]; got.Reason != c.want || got.Owns != (c.want == Reserved) || len(d.Actions) > 0 {
				t.Errorf("got %+v, %+v; want %s and no action", got, d.Actions, c.want)
			}
			c.o.Leaving = false
			if got := DecideObjects(c.kind, []DeclaredObject{c.o}, map[string]Entity{"anna": c.has}).Outcomes["u"]; got.Owns != (c.want == Reserved) {
				t.Errorf("got %+v while the object lives, want it to own the entity: %t", got, c.want == Reserved)
			}
		})
	}
}
