package plan

import (
	"fmt"
	"testing"
)

func TestFindHoldersIncludesBackendRoles(t *testing.T) {
	user := func(direct []any, backend ...any) Entity {
		return Entity{Body: Body{"opendistro_security_roles": direct, "backend_roles": backend}}
	}
	accounts := ListAccounts(map[string]Entity{
		"anna": user([]any{"logs"}), "ben": user(nil, "staff", "team-a"), "cleo": user([]any{"logs"}, "staff"), "dora": user(nil, "x", "y"), "emil": user(nil, "x"),
	})
	for name, c := range map[string]struct {
		has  MappingEntries
		want string
	}{
		"directly":                     {MappingEntries{Users: []string{"emil"}}, "[{anna true []} {cleo true []}]"},
		"by a backend role":            {MappingEntries{BackendRoles: []string{"staff"}}, "[{anna true []} {ben false [staff]} {cleo true [staff]}]"},
		"by a wildcard":                {MappingEntries{BackendRoles: []string{"team-?"}}, "[{anna true []} {ben false [team-a]} {cleo true []}]"},
		"by a regular expression":      {MappingEntries{BackendRoles: []string{"/te.*/"}}, "[{anna true []} {ben false [team-a]} {cleo true []}]"},
		"by backend roles all at once": {MappingEntries{And: []string{"x", "y"}}, "[{anna true []} {cleo true []} {dora false [x y]}]"},
	} {
		if got := fmt.Sprint(FindHolders("logs", c.has, accounts)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
