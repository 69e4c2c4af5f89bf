package policycommand_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestJSONOutputIsValidWithFindings runs every command on a policy with errors.
func TestJSONOutputIsValidWithFindings(t *testing.T) {
	chdirToFiles(t, map[string]string{"bad.yaml": brokenPolicy, "worse.yaml": "a: b\n", "good.yaml": volume, "access.yaml": assertions})
	for name, args := range map[string][]string{
		"check": {"check", "bad.yaml"}, "lint": {"lint", "bad.yaml"}, "test": {"test", "bad.yaml", "-a", "access.yaml"},
		"diff": {"diff", "good.yaml", "bad.yaml"}, "explain": {"explain", "volume", "get", "-f", "bad.yaml"},
		"compile": {"compile", "bad.yaml", "--target", "spicedb"}, "graph": {"graph", "bad.yaml"}, "fmt": {"fmt", "bad.yaml", "worse.yaml", "-l"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, append(args, "-o", "json")...)
			out := got.out + got.err
			var found []struct{ Code string }
			if name == "fmt" && !strings.Contains(out, "E-UNFORMATTED") {
				t.Errorf("it does not list what would change: %+v", got)
			}
			if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) == 0 || got.code != 1 || (got.out == "") == (got.err == "") {
				t.Errorf("%v: %+v", err, got)
			}
		})
	}
}

func TestErrorsAreJSONWithOutputJSON(t *testing.T) {
	chdirToFiles(t, map[string]string{"good.yaml": volume, "other.yaml": strings.Replace(volume, "storvol", "volstor", 1), "access.yaml": strings.Replace(assertions, "allow", "deny", 1)})
	for name, test := range map[string]struct {
		args   []string
		code   int
		says   string
		answer bool
	}{
		"a file that is not there":  {[]string{"check", "nowhere.yaml", "-o", "json"}, 2, "no such file", false},
		"SARIF of such a file":      {[]string{"check", "nowhere.yaml", "--output=sarif"}, 2, "no such file", false},
		"YAML of such a file":       {[]string{"diff", "nowhere.yaml", "good.yaml", "-oyaml"}, 2, "no such file", false},
		"an argument missing":       {[]string{"check", "-o", "json"}, 2, "at least 1 arg", false},
		"an unknown flag before it": {[]string{"check", "--bogus", "-o", "json"}, 2, "unknown flag: --bogus", false},
		"an unknown flag after it":  {[]string{"check", "good.yaml", "-o=json", "--bogus", "x"}, 2, "unknown flag: --bogus", false},
		"an unknown target":         {[]string{"compile", "good.yaml", "-t", "rego", "-o", "json"}, 2, "none of spicedb", false},
		"a type that is not there":  {[]string{"explain", "volum", "get", "-f", "good.yaml", "-o", "json"}, 3, "volume", false},
		"a server that is away":     {[]string{"check", "good.yaml", "--store", "demo", "--server", "http://127.0.0.1:1", "-o", "json"}, 4, "is `entail up` running?", false},
		"a change of a class":       {[]string{"diff", "good.yaml", "other.yaml", "-o", "json"}, 12, "breaking-for-ids", true},
		"an assertion that fails":   {[]string{"test", "good.yaml", "-a", "access.yaml", "-o", "json"}, 1, "assertions failed", true},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, test.args...)
			var failure struct {
				Error    string
				ExitCode int
			}
			if err := json.Unmarshal([]byte(got.err), &failure); err != nil || failure.ExitCode != test.code || got.code != test.code || !strings.Contains(failure.Error, test.says) {
				t.Errorf("%v: %+v", err, got)
			}
			if json.Valid([]byte(got.out)) != test.answer {
				t.Errorf("the answer is %q", got.out)
			}
		})
	}
}

// TestPolicyCompileHandles100000Bindings compiles a schema that exceeds the default limit of SpiceDB.
func TestPolicyCompileHandles100000Bindings(t *testing.T) {
	var types, members, actions, bindings strings.Builder
	for i := range 100 {
		fmt.Fprintf(&types, "- name: type%d\n  idPrefix: pfx%03d\n", i, i)
		fmt.Fprintf(&members, "  - name: type%d\n", i)
	}
	for i := range 1000 {
		action := "action_" + string([]rune{'a' + rune(i/676), 'a' + rune(i/26%26), 'a' + rune(i%26)})
		fmt.Fprintf(&actions, "- name: %s\n", action)
		fmt.Fprintf(&bindings, "- actionName: %s\n  typeName: all\n  conditions:\n  - roleBinding: {}\n", action)
	}
	chdirToFiles(t, map[string]string{"large.yaml": "resourceTypes:\n" + types.String() + "unions:\n- name: all\n  resourceTypes:\n" + members.String() +
		"actions:\n" + actions.String() + "actionBindings:\n" + bindings.String()})
	args := []string{"compile", "large.yaml", "--target", "spicedb", "--out", "schema.zed"}
	if got := run(t, args...); got.code != 1 || !strings.Contains(got.err, "E-SPICEDB-SIZE") || !strings.Contains(got.err, "--spicedb-max-bytes") {
		t.Errorf("with the limit of SpiceDB: %+v", got)
	}
	if got := run(t, append(args, "--spicedb-max-bytes", "-1")...); got.code != 0 {
		t.Errorf("without limit: %+v", got)
	}
	if schema, err := os.ReadFile("schema.zed"); err != nil || bytes.Count(schema, []byte("  permission ")) != 100_000 {
		t.Errorf("the schema has %d bytes, %v", len(schema), err)
	}
}

func TestFindingsShowSourceLine(t *testing.T) {
	chdirToFiles(t, map[string]string{"bad.yaml": brokenPolicy})
	got := run(t, "check", "bad.yaml")
	if want := "    |   - name: tenant_get\n    |           ^\n"; !strings.Contains(got.out, want) {
		t.Errorf("%s lacks\n%s", got.out, want)
	}
}
