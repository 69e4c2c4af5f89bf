package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/spicedb"
)

func TestSpiceDBAcceptsExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../testdata/loadbalancer/schema.zed")
	if err != nil {
		t.Fatal(err)
	}
	if definitions, err := compile(t, string(text)); err != nil || definitions != 6 {
		t.Errorf("%d definitions, %v", definitions, err)
	}
}

func TestSpiceDBAcceptsCheckedPolicies(t *testing.T) {
	t.Parallel()
	if refused := testSpiceDBCorpus(t, 1000); refused == 0 || refused > 100 {
		t.Errorf("%d policies are not for SpiceDB", refused)
	}
}

// testSpiceDBCorpus compiles a number of generated policies for SpiceDB, and returns the number of rejected ones.
func testSpiceDBCorpus(t *testing.T, policies uint64) int {
	t.Helper()
	refused := 0
	for seed := range policytest.SeedRange(t, policies) {
		texts := policytest.GeneratePolicy(seed)
		schema, found := spicedb.CompileSchema(valid(t, policy.Options{}, texts...), spicedb.Options{})
		if found.HasErrors() {
			refused++
			continue
		}
		if _, err := compile(t, string(schema)); err != nil {
			t.Fatalf("seed %d: %v in\n%s\nof\n%s", seed, err, schema, texts)
		}
	}
	return refused
}

// one returns a policy with one type and one action.
func one(typ, relation, action string) string {
	return fmt.Sprintf("resourceTypes: [{name: '%[1]s', idPrefix: foo, relationships: [{relation: '%[2]s', targetTypes: ['%[1]s']}]}]\n"+
		"actions: [{name: '%[3]s'}]\nactionBindings: [{actionName: '%[3]s', typeName: '%[1]s', conditions: [{roleBinding: {}}]}]\n", typ, relation, action)
}

// plain returns the schema of a policy without SpiceDB's checks: the names are inserted afterwards.
func plain(t *testing.T, typ, relation, action string) string {
	t.Helper()
	schema, found := spicedb.CompileSchema(valid(t, policy.Options{}, one("typename", "relationname", "actionname")), spicedb.Options{})
	if found.HasErrors() {
		t.Fatal(found)
	}
	return strings.NewReplacer("typename", typ, "relationname", relation, "actionname", action).Replace(string(schema))
}

// TestSpiceDBNameCheckEqualsSpiceDB compares with SpiceDB on the same names.
func TestSpiceDBNameCheckEqualsSpiceDB(t *testing.T) {
	t.Parallel()
	names := []string{
		"definition", "caveat", "relation", "permission", "nil", "with", "self", "expiration", "and", "use", "import", "partial", "any", "all", "true", "this",
		"a_b", "a__b", "get_", "ab", "a", "abc",
	}
	for _, length := range []int{58, 59, 60, 63, 64, 65, 100, 112, 113, 114, 120} {
		names = append(names, strings.Repeat("a", length))
	}
	for _, name := range names {
		for position, names := range map[string][3]string{
			"type": {name, "own", "get"}, "relation": {"foo", name, "get"}, "action": {"foo", "own", name},
		} {
			if !policy.IsActionName(name) && position == "action" {
				continue
			}
			t.Run(position+" "+name, func(t *testing.T) {
				t.Parallel()
				found := spicedb.CheckSchema(valid(t, policy.Options{}, one(names[0], names[1], names[2])), spicedb.Options{})
				_, err := compile(t, plain(t, names[0], names[1], names[2]))
				if found.HasErrors() != (err != nil) {
					t.Errorf("SpiceDB says %v, we say %v", err, found)
				}
			})
		}
	}
}

func TestSpiceDBPrefixCheckEqualsSpiceDB(t *testing.T) {
	t.Parallel()
	p := valid(t, policy.Options{}, one("foo", "own", "get"))
	for _, prefix := range []string{"foo", "fo", "f", "foo/bar", "foo/b", "Foo", "foo-bar", "foo_", "a1b", "1ab", "with", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("abc/", 31) + "abc"} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			schema, _ := spicedb.CompileSchema(p, spicedb.Options{})
			_, err := compile(t, strings.ReplaceAll(string(schema), "infratographer/", prefix+"/"))
			_, found := spicedb.CompileSchema(p, spicedb.Options{Prefix: prefix})
			if found.HasErrors() != (err != nil) {
				t.Errorf("SpiceDB says %v, we say %v", err, found)
			}
		})
	}
}

func TestSpiceDBAcceptsOtherOptions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options policy.Options
		target  spicedb.Options
	}{
		"no prefix":           {target: spicedb.Options{Unprefixed: true}},
		"prefix of two parts": {target: spicedb.Options{Prefix: "foo/bar"}},
		"another suffix":      {options: policy.Options{RoleSuffix: "_rel"}},
		"another role":        {options: policy.Options{RoleType: "duty", RoleRelation: "holder", SubjectTypes: []string{"user", "client", "foo"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, found := spicedb.CompileSchema(valid(t, test.options, one("foo", "own", "get")), test.target)
			if found.HasErrors() {
				t.Fatal(found)
			}
			if _, err := compile(t, string(schema)); err != nil {
				t.Errorf("%v in\n%s", err, schema)
			}
		})
	}
}
