package policycommand_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/entail/internal/command"
)

// commandResult holds the output and the exit code of a run.
type commandResult struct {
	code     int
	out, err string
}

// run runs `entail policy` with the given arguments.
func run(t *testing.T, args ...string) commandResult {
	t.Helper()
	var out, err bytes.Buffer
	code := command.Run(t.Context(), append([]string{"policy"}, args...), command.IOStreams{
		In: strings.NewReader(""), Out: &out, Err: &err, Getenv: func(string) string { return "" },
	})
	return commandResult{code, out.String(), err.String()}
}

// fixture returns the folder with the example of the language, one document in each file.
func fixture(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "policy", "testdata", "loadbalancer", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i, document := range strings.Split(string(content), "\n---\n") {
		put(t, filepath.Join(dir, string(rune('a'+i))+".yaml"), document+"\n")
	}
	return dir
}

func put(t *testing.T, file, content string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPolicyReadsManifestsOfPolicyDocuments(t *testing.T) {
	sample := filepath.Join("..", "..", "..", "..", "deploy", "samples", "policydocuments", "loadbalancer.yaml")
	if got := run(t, "check", sample); got.code != 0 || got.out+got.err != "" {
		t.Errorf("check: %+v", got)
	}
	got := run(t, "compile", sample, "--target", "openfga-modules")
	if got.code != 0 || !strings.Contains(got.out, "module default_load-balancer-api\n") {
		t.Errorf("compile: %+v", got)
	}
	content, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, "fmt", sample); got.code != 0 || got.out != string(content) {
		t.Errorf("fmt: %+v", got)
	}
}

func TestPolicyCheckWithOtherDocuments(t *testing.T) {
	dir := fixture(t)
	mine := filepath.Join(dir, "c.yaml")
	if got := run(t, "check", mine); got.code != 1 || !strings.Contains(got.out, "E-UNKNOWN-TYPE") {
		t.Errorf("alone: %+v", got)
	}
	if got := run(t, "check", mine, "--with", filepath.Join(dir, "a.yaml")+","+dir); got.code != 0 || got.out+got.err != "" {
		t.Errorf("beside the others: %+v", got)
	}
	put(t, filepath.Join(dir, "b.yaml"), "resourceTypes: [{name: unused, idPrefix: unused}]\n")
	if got := run(t, "check", filepath.Join(dir, "a.yaml"), "--with", filepath.Join(dir, "b.yaml")); got.code != 0 || strings.Contains(got.out, "unused") {
		t.Errorf("what others are warned of: %+v", got)
	}
	sample := filepath.Join("..", "..", "..", "..", "deploy", "samples", "policydocuments", "loadbalancer.yaml")
	if got := run(t, "check", sample, "--with", sample); got.code != 0 {
		t.Errorf("manifests in the place of themselves: %+v", got)
	}
}

func TestPolicyFmtMakesValidManifests(t *testing.T) {
	if got := run(t, "fmt", fixture(t), "--as", "manifest"); got.code != 2 || !strings.Contains(got.err, "--store") {
		t.Errorf("without a store: %+v", got)
	}
	got := run(t, "fmt", filepath.Join(fixture(t), "a.yaml"), "--as", "manifest", "--store", "demo", "--name", "tenant-api")
	if got.code != 0 || !strings.Contains(got.out, "kind: PolicyDocument\n") || !strings.Contains(got.out, "targetTypes:") {
		t.Fatalf("fmt: %+v", got)
	}
	file := put(t, filepath.Join(t.TempDir(), "manifest.yaml"), got.out)
	if got := run(t, "check", file); got.code != 0 {
		t.Errorf("check: %+v", got)
	}
	put(t, file, strings.Replace(got.out, "targetTypes:", "targettypes:", 1))
	if got := run(t, "check", file); got.code != 1 || !strings.Contains(got.out, "E-MANIFEST") || !strings.Contains(got.out, "write targetTypes") {
		t.Errorf("check of what kubectl would prune: %+v", got)
	}
	if got := run(t, "fmt", "-w", file); got.code != 0 {
		t.Errorf("fmt: %+v", got)
	}
	if got := run(t, "check", file); got.code != 0 {
		t.Errorf("check of what fmt mended: %+v", got)
	}
}

const brokenPolicy = `resourceTypes:
  - name: tenant
    idPrefix: idntten
    relationships:
      - relation: parent
        targetTypes: [{name: tennant}]
actions:
  - name: tenant_get
  - name: tenant_get
`

func TestPolicyCheckReportsEveryErrorWithPlace(t *testing.T) {
	if got := run(t, "check", fixture(t)); got.code != 0 || got.out != "" {
		t.Errorf("the example: %+v", got)
	}
	file := put(t, filepath.Join(t.TempDir(), "broken.yaml"), brokenPolicy)
	got := run(t, "check", file)
	for _, want := range []string{file + ":6:", "tennant", file + ":9:", "tenant_get", "hint:"} {
		if got.code != 1 || !strings.Contains(got.out, want) {
			t.Errorf("exit code %d, %q lacks %q", got.code, got.out, want)
		}
	}
	var found []struct {
		File, Code, Message string
		Line                int
	}
	asJSON := run(t, "check", file, "-o", "json")
	if err := json.Unmarshal([]byte(asJSON.out), &found); err != nil || len(found) < 2 || found[0].Line != 6 || asJSON.code != 1 {
		t.Errorf("as JSON: %v, %+v", err, found)
	}
	if sarif := run(t, "check", file, "-o", "sarif"); !strings.Contains(sarif.out, `"2.1.0"`) || sarif.code != 1 {
		t.Errorf("as SARIF: %+v", sarif)
	}
}

func TestPolicyCompileWritesEveryTarget(t *testing.T) {
	dir := fixture(t)
	for target, want := range map[string]string{
		"spicedb": "definition infratographer/loadbalancer {", "openfga-dsl": "define loadbalancer_get: loadbalancer_get_role or loadbalancer_get from owner",
		"openfga-json": `"schema_version":"1.1"`, "openfga-modules": "module load-balancer-api",
	} {
		t.Run(target, func(t *testing.T) {
			got := run(t, "compile", dir, "--target", target)
			if got.code != 0 || !strings.Contains(got.out, want) {
				t.Errorf("exit code %d: %s%s", got.code, got.out, got.err)
			}
		})
	}
	if got := run(t, "compile", dir, "--target", "rego"); got.code != 2 || !strings.Contains(got.err, "none of spicedb") {
		t.Errorf("an unknown target: %+v", got)
	}
	if got := run(t, "compile", dir, "--target", "openfga-dsl", "--max-types", "2"); got.code != 1 || got.out != "" {
		t.Errorf("a model that the server would not take: %+v", got)
	}
}

func TestPolicyCompileFindsDrift(t *testing.T) {
	for _, target := range []string{"openfga-dsl", "openfga-modules"} {
		t.Run(target, func(t *testing.T) {
			dir, made := fixture(t), filepath.Join(t.TempDir(), "made")
			compile := func(flag string) commandResult {
				return run(t, "compile", dir, "--target", target, flag, made)
			}
			if got := compile("--check"); got.code != 2 {
				t.Errorf("without a file: %+v", got)
			}
			if got := compile("--out"); got.code != 0 || got.out != "" {
				t.Fatalf("writing: %+v", got)
			}
			if got := compile("--check"); got.code != 0 {
				t.Errorf("what was just written: %+v", got)
			}
			stray := filepath.Join(made, "stray.fga")
			if target == "openfga-dsl" {
				stray = made
			}
			put(t, stray, "module stray\n")
			if got := compile("--check"); got.code != 1 || !strings.Contains(got.err, "compile it again") {
				t.Errorf("something else: %+v", got)
			}
		})
	}
}

func TestPolicyTestChecksWithOpenFGA(t *testing.T) {
	dir, tests := fixture(t), t.TempDir()
	good := put(t, filepath.Join(tests, "good.yaml"), `
tuples:
  - tenant:root#loadbalancer_get_role@role:viewer#subject
  - role:viewer#subject@user:alice
allow: [user:alice loadbalancer_get tenant:root]
deny: [user:bob loadbalancer_get tenant:root]
`)
	if got := run(t, "test", dir, "-a", good); got.code != 0 || got.out != "2 passed, 0 failed\n" {
		t.Errorf("got %+v", got)
	}
	bad := put(t, filepath.Join(tests, "bad.yaml"), "name: bad\nallow: [user:bob loadbalancer_get tenant:root]\n")
	got := run(t, "test", dir, "-a", good+","+bad)
	if got.code != 1 || !strings.Contains(got.out, bad+":2: bad: user:bob may not") || !strings.Contains(got.out, "no role has loadbalancer_get") {
		t.Errorf("got %+v", got)
	}
	if got := run(t, "test", dir, "-a", good, "-o", "json"); !strings.Contains(got.out, `"passed": 2`) {
		t.Errorf("as JSON: %+v", got)
	}
	for name, args := range map[string][]string{
		"no assertions": {dir}, "no such file": {dir, "-a", "/nowhere"}, "no YAML": {dir, "-a", put(t, filepath.Join(tests, "no.yaml"), "{")},
	} {
		if got := run(t, append([]string{"test"}, args...)...); got.code != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestPolicyDiffExitCodeIsWorstClass(t *testing.T) {
	before := fixture(t)
	content := func(file string) string {
		data, err := os.ReadFile(filepath.Join(before, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	file := map[string]string{}
	for _, name := range []string{"a.yaml", "b.yaml", "c.yaml", "d.yaml"} {
		file[name] = content(name)
	}
	tests := map[string]struct {
		in, old, new string
		code         int
	}{
		"nothing":          {"a.yaml", "tenant", "tenant", 0},
		"a comment":        {"a.yaml", "resourceTypes:", "# a comment\nresourceTypes:", 0},
		"a condition gone": {"c.yaml", "      - roleBinding: {}\n      - relationshipAction:\n          relation: parent\n          actionName: loadbalancer_create", "      - relationshipAction:\n          relation: parent\n          actionName: loadbalancer_create\n      - relationshipAction:\n          relation: parent\n          actionName: loadbalancer_get", 13},
		"an id prefix":     {"a.yaml", "idPrefix: idntten", "idPrefix: idother", 12},
		"a way less":       {"c.yaml", "      - relationshipAction:\n          relation: owner\n          actionName: loadbalancer_get\n", "", 10},
		"a way more": {
			"c.yaml", "          relation: owner\n          actionName: loadbalancer_get\n",
			"          relation: owner\n          actionName: loadbalancer_get\n      - relationshipAction:\n          relation: owner\n          actionName: loadbalancer_create\n", 11,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(file[test.in], test.old) {
				t.Fatalf("%s has changed: %s", test.in, file[test.in])
			}
			after := t.TempDir()
			for name, text := range file {
				if name == test.in {
					text = strings.Replace(text, test.old, test.new, 1)
				}
				put(t, filepath.Join(after, name), text)
			}
			got := run(t, "diff", before, after)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d: %s%s", got.code, test.code, got.out, got.err)
			}
		})
	}
}

func TestPolicyExplainDrawsPaths(t *testing.T) {
	dir := fixture(t)
	got := run(t, "explain", "loadbalancer", "loadbalancer_get", "-f", dir)
	if got.code != 0 || !strings.Contains(got.out, "loadbalancer_get_role") || !strings.Contains(got.out, "owner") {
		t.Errorf("got %+v", got)
	}
	if got := run(t, "explain", "loadbalancr", "loadbalancer_get", "-f", dir); got.code != 3 || !strings.Contains(got.err, "loadbalancer") {
		t.Errorf("a misspelt type: %+v", got)
	}
}

func TestPolicyFmtKeepsMeaning(t *testing.T) {
	dir := fixture(t)
	if got := run(t, "fmt", "-l", dir); got.code != 1 || !strings.Contains(got.err, "a.yaml: not formatted") {
		t.Errorf("files with lower-case keys: %+v", got)
	}
	before := run(t, "compile", dir, "--target", "spicedb").out
	if got := run(t, "fmt", "-w", dir); got.code != 0 || got.out != "" {
		t.Fatalf("got %+v", got)
	}
	if got := run(t, "fmt", "-l", dir); got.code != 0 {
		t.Errorf("once more: %+v", got)
	}
	if after := run(t, "compile", dir, "--target", "spicedb").out; after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func TestPolicyLintReportsWarnings(t *testing.T) {
	dir := fixture(t)
	if got := run(t, "lint", dir); got.code != 0 && !strings.Contains(got.out, "W-") {
		t.Errorf("the example: %+v", got)
	}
	put(t, filepath.Join(dir, "z.yaml"), "actions:\n  - name: unused_action\n")
	if got := run(t, "lint", dir); got.code != 1 || !strings.Contains(got.out, "unused_action") {
		t.Errorf("an action that nothing binds: %+v", got)
	}
}

func TestPolicyRefusesInvalidInput(t *testing.T) {
	empty := t.TempDir()
	huge := filepath.Join(t.TempDir(), "huge.yaml")
	file, err := os.Create(huge)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(100 << 20); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args  []string
		codes []int
		want  string
	}{
		"no file":           {[]string{"/nowhere.yaml"}, []int{2}, "no such file"},
		"an empty folder":   {[]string{empty}, []int{2}, "no *.yaml files"},
		"100 MB":            {[]string{huge}, []int{1, 2}, "more than"},
		"a wrong option":    {[]string{fixture(t), "--role-suffix", "x"}, []int{2}, "use _, then"},
		"an unknown format": {[]string{fixture(t), "-o", "xml"}, []int{2}, "text, json, sarif"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := run(t, append([]string{"check"}, test.args...)...)
			if !slices.Contains(test.codes, got.code) || !strings.Contains(got.out+got.err, test.want) {
				t.Errorf("got %+v, want %q", got, test.want)
			}
		})
	}
}

func TestPolicyGraphDrawsInEveryFormat(t *testing.T) {
	dir := fixture(t)
	for format, want := range map[string]string{"svg": "<svg", "dot": "digraph", "mermaid": "flowchart"} {
		got := run(t, "graph", dir, "--as", format)
		if got.code != 0 || !strings.Contains(got.out, want) || !strings.Contains(got.out, "loadbalancer") {
			t.Errorf("--as %s: %+v", format, got)
		}
	}
	if got := run(t, "graph", dir, "--as", "dot", "--types", "^tenant$"); got.code != 0 || !strings.Contains(got.out, "tenant") || strings.Contains(got.out, "project") {
		t.Errorf("filtered: %+v", got)
	}
	if got := run(t, "graph", dir, "--as", "dot", "--focus", "project", "--depth", "1", "--collapse", "."); got.code != 0 || !strings.Contains(got.out, "owner load-balancer-api") || !strings.Contains(got.out, `"project"`) {
		t.Errorf("focused: %+v", got)
	}
	for _, args := range [][]string{{"--as", "png"}, {"--types", "("}, {"--collapse", "("}, {"--focus", "nobody"}} {
		if got := run(t, append([]string{"graph", dir}, args...)...); got.code != 2 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
