package policycommand_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestJSONIsJSONWhateverIsFound asks every command about a policy with errors.
func TestJSONIsJSONWhateverIsFound(t *testing.T) {
	inFolder(t, map[string]string{"bad.yaml": brokenPolicy, "worse.yaml": "a: b\n", "good.yaml": volume, "access.yaml": assertions})
	for name, args := range map[string][]string{
		"check": {"check", "bad.yaml"}, "lint": {"lint", "bad.yaml"}, "test": {"test", "bad.yaml", "-a", "access.yaml"},
		"diff": {"diff", "good.yaml", "bad.yaml"}, "explain": {"explain", "volume", "get", "-f", "bad.yaml"},
		"compile": {"compile", "bad.yaml", "--target", "spicedb"}, "graph": {"graph", "bad.yaml"}, "fmt": {"fmt", "bad.yaml", "worse.yaml", "-l"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, append(args, "-o", "json")...)
			out := got.out + got.err
			var found []struct{ Code string }
			if name == "fmt" {
				// What would change is listed, too.
				var rest string
				out, rest, _ = strings.Cut(got.err, "\n]\n")
				if out += "]"; !strings.Contains(rest, "bad.yaml: not formatted") {
					t.Errorf("it does not list what would change: %+v", got)
				}
			}
			if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) == 0 || got.code != 1 || (got.out == "") == (got.err == "") {
				t.Errorf("%v: %+v", err, got)
			}
		})
	}
}

func TestFindingsShowTheLineThatTheyAreAbout(t *testing.T) {
	inFolder(t, map[string]string{"bad.yaml": brokenPolicy})
	got := run(t, "check", "bad.yaml")
	if want := "    |   - name: tenant_get\n    |           ^\n"; !strings.Contains(got.out, want) {
		t.Errorf("%s lacks\n%s", got.out, want)
	}
}
