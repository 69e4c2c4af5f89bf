package policycommand_test

import (
	"os"
	"strings"
	"testing"
)

func TestPolicyFmtKeepsSymlinks(t *testing.T) {
	chdirToFiles(t, map[string]string{"a.yaml": "actions: [{name: get}] # all\n", "link.yaml": "-> a.yaml"})
	if got := run(t, "fmt", "-w", "link.yaml"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if target, err := os.Readlink("link.yaml"); err != nil || target != "a.yaml" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if text, err := os.ReadFile("a.yaml"); err != nil || string(text) != "actions: # all\n  - name: get\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestPolicyFmtPrintsOneStream(t *testing.T) {
	chdirToFiles(t, map[string]string{"a.yaml": "actions: []\n", "b.yaml": "---\n# none\n---\nactions: []\n", "c.yaml": "unions: []\n", "bad.yaml": "a: b\n", "worse.yaml": "c: d\n"})
	if got := run(t, "fmt", "a.yaml", "b.yaml", "c.yaml"); got.out != "actions: []\n---\n# none\n---\nactions: []\n---\nunions: []\n" {
		t.Errorf("%+v", got)
	}
	got := run(t, "fmt", "bad.yaml", "worse.yaml")
	if got.code != 1 || strings.Count(got.err, "there are findings") != 1 || !strings.Contains(got.err, "worse.yaml:1:1") {
		t.Errorf("of two files with errors: %+v", got)
	}
}
