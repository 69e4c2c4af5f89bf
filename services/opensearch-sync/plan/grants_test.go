package plan

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func grantNames() map[string]bool {
	return textSet([]string{"anna", "ben", "boss-ab", "a", "b", "c", "dev", "ops", "admin"})
}

// A server can list a million patterns for a role that it calls reserved.
func TestGrantsOfManyPatternsTakeLittleMemory(t *testing.T) {
	var many []any
	for i := range 300_000 {
		many = append(many, fmt.Sprintf("%x*", i))
	}
	roles := map[string]Entity{"company": NewEntity(map[string]any{"reserved": true})}
	mappings := map[string]Entity{"company": NewEntity(map[string]any{"users": many, "backend_roles": many})}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	grants := FindProtectedGrants(roles, mappings, grantNames())
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 64 {
		t.Errorf("got %d MiB allocated, want at most 64", took)
	}
	o := user("u", func(o *DeclaredObject) { o.Grants = grants })
	has := map[string]Entity{"anna": listedUser(owned("u", "tag"), "a")} // What matches the other patterns is not known.
	if d := DecideObjects(Users, []DeclaredObject{o}, has); d.Outcomes["u"].Reason != BindNeeded {
		t.Errorf("got %+v, want %s", d.Outcomes["u"], BindNeeded)
	}
}

func TestRolesOfUserFindsProtectedRoles(t *testing.T) {
	static := NewEntity(map[string]any{"static": true})
	for name, c := range map[string]struct {
		role    string
		mapping map[string]any
		backend string
		want    bool
	}{
		"the name":                          {"all_access", map[string]any{"users": []any{"anna"}}, "", true},
		"a pattern of the name":             {"all_access", map[string]any{"users": []any{"a?n*"}}, "", true},
		"an expression of any name":         {"all_access", map[string]any{"users": []any{"/b/"}}, "", true},
		"every user":                        {"own_index", map[string]any{"users": []any{"*"}}, "", false},
		"a backend role":                    {"all_access", map[string]any{"backend_roles": []any{"ops"}}, "dev,ops", true},
		"every backend role":                {"all_access", map[string]any{"backend_roles": []any{"*"}}, "dev", true},
		"a backend role by name":            {"all_access", map[string]any{"users": []any{"ops"}}, "ops", false},
		"a role that is not protected":      {"logs", map[string]any{"backend_roles": []any{"ops"}}, "ops", false},
		"all of a list":                     {"all_access", map[string]any{"and_backend_roles": []any{"a", "b"}}, "a,b,c", true},
		"what admission decides":            {"all_access", map[string]any{"backend_roles": []any{"admin"}}, "admin", false},
		"what it decides for another role":  {"readall", map[string]any{"backend_roles": []any{"admin"}}, "admin", true},
		"what it decides beside a name":     {"all_access", map[string]any{"users": []any{"anna"}, "backend_roles": []any{"admin"}}, "admin", true},
		"what it decides, and another role": {"all_access", map[string]any{"backend_roles": []any{"admin", "ops"}}, "admin,ops", true},
	} {
		t.Run(name, func(t *testing.T) {
			roles := map[string]Entity{"all_access": static, "own_index": static, "readall": static, "logs": {}}
			grants := FindProtectedGrants(roles, map[string]Entity{c.role: NewEntity(c.mapping), "other": {}}, grantNames())
			backend := slices.DeleteFunc(strings.Split(c.backend, ","), func(b string) bool { return b == "" })
			if got := grants.RolesOfUser("anna", Body{fieldBackendRoles: toAnySlice(backend)}); slices.Contains(got, c.role) != c.want {
				t.Errorf("got %q, want %s: %t", got, c.role, c.want)
			}
		})
	}
}

func TestRolesOfUserFindsRolesWithoutMapping(t *testing.T) {
	guarded := NewEntity(map[string]any{"reserved": true})
	grants := FindProtectedGrants(map[string]Entity{"company": guarded, "all_access": guarded, "logstash": guarded, "logs": {}},
		map[string]Entity{"mapped": NewEntity(map[string]any{"reserved": true, "users": []any{"anna"}})}, grantNames())
	for name, c := range map[string]struct {
		name  string
		field string
		role  string
		want  string
	}{
		"a backend role of the name":           {"ben", fieldBackendRoles, "all_access", "all_access"},
		"one that admission decides":           {"ben", fieldBackendRoles, "logstash", ""},
		"one of a role that is not protected":  {"ben", fieldBackendRoles, "logs", ""},
		"a protected role":                     {"ben", fieldRoles, "company", "company"},
		"a protected role that admission has":  {"ben", fieldRoles, "all_access", ""},
		"a mapping that OpenSearch reserves":   {"anna", fieldRoles, "logs", "mapped"},
		"a role that no list of theirs names":  {"ben", fieldRoles, "logs", ""},
		"a name that is also a protected role": {"company", fieldRoles, "logs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(grants.RolesOfUser(c.name, Body{c.field: []any{c.role}}), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A rune above U+FFFF is two characters in Java.
func TestNameMatcherReadsQuestionMarkLikeJava(t *testing.T) {
	if matches := newNameMatcher("boss-??"); !matches("boss-\U0001F600") || !matches("boss-ab") || matches("boss-abc") {
		t.Error("the pattern boss-?? matches other names than in OpenSearch")
	}
}

func TestRolesUncheckedByAdmissionOmitsCheckedRoles(t *testing.T) {
	data, err := os.ReadFile("../../../deploy/admission/opensearch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`(?s)variables\.roles\.filter\(r, \[(.*?)\].*?\'snapshot_management_\'\)`).FindAllString(string(data), -1)
	if len(lists) != 2 || lists[0] != lists[1] {
		t.Fatalf("got the lists %q, want the same in two policies", lists)
	}
	roles := map[string]Entity{"company": {Guarded: true}, "logs": {}}
	for _, name := range regexp.MustCompile(`'([a-z0-9_]+)'`).FindAllStringSubmatch(lists[0], -1) {
		roles[name[1]] = Entity{Guarded: true}
		roles[name[1]+"-more"] = Entity{Guarded: true} // Only a prefix covers it.
	}
	for role, undecided := range RolesUncheckedByAdmission(roles) {
		name, longer := strings.CutSuffix(role, "-more")
		covered := strings.HasSuffix(name, "_") || !longer
		if want := role == "company" || role != "logs" && !covered; undecided != want {
			t.Errorf("%s: got undecided %t, want %t", role, undecided, want)
		}
	}
}

func TestDecideObjectsDoesNotWriteUserWithUnapprovedRole(t *testing.T) {
	roles := map[string]Entity{"all_access": NewEntity(map[string]any{"reserved": true}), "company": NewEntity(map[string]any{"reserved": true})}
	byName := map[string]any{"users": []any{"anna"}}
	byRole := map[string]any{"backend_roles": []any{"b"}}
	for name, c := range map[string]struct {
		mapping      map[string]any
		edit         func(*DeclaredObject)
		has          *Entity
		want, reason string
	}{
		"a new user whose name has the role":        {byName, nil, nil, "", BindNeeded},
		"a new user whose backend role has it":      {byRole, nil, nil, "", BindNeeded},
		"a new user who is approved":                {byName, func(o *DeclaredObject) { o.Approved = true }, nil, "put", Synced},
		"another password":                          {byName, nil, new(listedUser(owned("u", "old"), "a", "b")), "", BindNeeded},
		"another password and a backend role less":  {byName, nil, new(listedUser(owned("u", "old"), "a", "b", "power")), "add", BindNeeded},
		"a changed Secret of a user in step":        {byName, func(o *DeclaredObject) { o.InStep = true }, new(listedUser(owned("u", "old"), "a", "b")), "put", Synced},
		"an adopted user":                           {byName, func(o *DeclaredObject) { o.Adopt = true }, new(listedUser(nil, "a", "b")), "", BindNeeded},
		"another backend role of a user who has it": {byName, nil, new(listedUser(owned("u", "tag"), "a")), "add", Synced},
		"the backend role that has it":              {byRole, nil, new(listedUser(owned("u", "tag"), "a")), "", BindNeeded},
		"a backend role less":                       {byRole, nil, new(listedUser(owned("u", "tag"), "a", "b", "power")), "add", Synced},
		"a user in step":                            {byName, nil, new(listedUser(owned("u", "tag"), "a", "b")), "", Synced},
		"a direct role more":                        {byName, func(o *DeclaredObject) { o.Body[fieldRoles] = []any{"own"} }, new(listedUser(owned("u", "tag"), "a")), "add", Synced},
		"a protected direct role":                   {nil, func(o *DeclaredObject) { o.Body[fieldRoles] = []any{"company"} }, new(listedUser(owned("u", "tag"), "a", "b")), "", BindNeeded},
		"a protected direct role that it has": {nil, func(o *DeclaredObject) { o.Body[fieldRoles] = []any{"company"} }, new(func() Entity {
			e := listedUser(owned("u", "tag"), "a")
			e.Body[fieldRoles] = []any{"company"}
			return e
		}()), "add", Synced},
		"a user who leaves": {byName, func(o *DeclaredObject) { o.Leaving = true }, new(listedUser(owned("u", "tag"))), "remove", Synced},
	} {
		t.Run(name, func(t *testing.T) {
			o := user("u", c.edit)
			o.Grants, o.Approval = FindProtectedGrants(roles, map[string]Entity{"all_access": NewEntity(c.mapping)}, grantNames()), "approval-of-u"
			actual := map[string]Entity{}
			if c.has != nil {
				actual["anna"] = *c.has
			}
			d := DecideObjects(Users, []DeclaredObject{o}, actual)
			got := d.Outcomes["u"]
			if verbs(d.Actions, "anna") != c.want || got.Reason != c.reason {
				t.Errorf("got %q, %+v; want %q, %s", verbs(d.Actions, "anna"), got, c.want, c.reason)
			}
			if c.reason == BindNeeded && (!strings.Contains(got.Message, "opensearch.org/bind=approval-of-u") || !strings.Contains(got.Message, "all_access") && !strings.Contains(got.Message, "company")) {
				t.Errorf("got the message %q, want the role and the annotation", got.Message)
			}
			if want := c.has != nil && c.has.attributeOf("k8s-uid") == "u"; c.reason == BindNeeded && got.Owns != want {
				t.Errorf("got owns %t, want %t", got.Owns, want)
			}
		})
	}
}

// An object without approval writes nothing, so it must not keep the user of a deleted object of the same name.
func TestDecideObjectsRemovesDeletedUserWithUnapprovedSuccessor(t *testing.T) {
	grants := FindProtectedGrants(map[string]Entity{"all_access": NewEntity(map[string]any{"reserved": true})},
		map[string]Entity{"all_access": NewEntity(map[string]any{"users": []any{"anna"}})}, grantNames())
	gone := user("old", func(o *DeclaredObject) { o.Leaving, o.Gone, o.Grants = true, true, grants })
	next := user("next", func(o *DeclaredObject) { o.Grants = grants })
	actual := map[string]Entity{"anna": listedUser(owned("old", "tag"))}
	if got := verbs(DecideObjects(Users, []DeclaredObject{gone, next}, actual).Actions, "anna"); got != "remove" {
		t.Errorf("got %q, want the user of the deleted object removed", got)
	}
	next.Approved = true
	if got := verbs(DecideObjects(Users, []DeclaredObject{gone, next}, actual).Actions, "anna"); got == "remove" {
		t.Errorf("got %q, want the user kept for the approved object", got)
	}
}

func TestContainsResultComparesListingWithAction(t *testing.T) {
	listed := map[string]Entity{"anna": listedUser(owned("u", "tag"), "b", "a")}
	body := func(roles ...any) Body {
		return Users.completeBody(Body{"backend_roles": roles, "attributes": owned("u", "tag")})
	}
	for action, want := range map[*Action]bool{
		{Name: "anna", Body: body("a", "b")}: true, {Name: "anna", Body: body("a")}: false, {Name: "ben", Body: body("a", "b")}: false,
		{Name: "ben"}: true, {Name: "anna"}: false,
		{Name: "anna", Body: body("a"), Fields: []string{"attributes"}}: true, {Name: "anna", Body: body("a"), Fields: []string{"backend_roles"}}: false,
		{Name: "anna", Fields: []string{"description"}, Body: Body{}}: true, {Name: "anna", Fields: []string{"attributes"}, Body: Body{}}: false,
	} {
		if got := Users.ContainsResult(*action, listed); got != want {
			t.Errorf("%+v: got %t, want %t", *action, got, want)
		}
	}
}
