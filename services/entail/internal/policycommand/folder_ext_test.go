package policycommand_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/entail/internal/policycommand"
)

const (
	volume     = "resourceTypes: [{name: volume, idPrefix: storvol}]\nactions: [{name: get}]\nactionBindings: [{actionName: get, typeName: volume, conditions: [{roleBinding: {}}]}]\n"
	assertions = "tuples: [role:a#subject@user:alice, 'volume:v#get_role@role:a#subject']\nallow: [user:alice get volume:v]\n"
)

// chdirToFiles creates files and links in a temporary folder, and makes it the working directory.
func chdirToFiles(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if target, link := strings.CutPrefix(content, "-> "); !link {
			put(t, name, content)
		} else if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadPathsReadsFolders(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		args  []string
	}{
		"a mounted ConfigMap": {
			map[string]string{"mount/policy.yaml": "-> ..data/policy.yaml", "mount/..data": "-> ..2025", "mount/..2025/policy.yaml": volume}, []string{"mount"},
		},
		"a hidden folder":             {map[string]string{"dir/.git/a.yaml": volume, "dir/a.yaml": volume, "dir/.b.yaml": volume}, []string{"dir"}},
		"a link to a folder":          {map[string]string{"dir/a.yaml": volume, "link": "-> dir"}, []string{"link"}},
		"a link to a folder in one":   {map[string]string{"other/a.yaml": volume, "dir/link": "-> ../other"}, []string{"dir"}},
		"a link that leads nowhere":   {map[string]string{"dir/a.yaml": volume, "dir/notes": "-> nowhere"}, []string{"dir"}},
		"links that lead in a circle": {map[string]string{"dir/a.yaml": volume, "dir/sub/up": "-> .."}, []string{"dir"}},
		"a suffix in capitals":        {map[string]string{"dir/a.YAML": volume}, []string{"dir"}},
		"assertions by their name":    {map[string]string{"dir/a.yaml": volume, "dir/a_test.yaml": "nonsense: []\n"}, []string{"dir"}},
		"assertions by their content": {map[string]string{"dir/a.yaml": volume, "dir/tests/access.yml": assertions}, []string{"dir"}},
		"one file by two names":       {map[string]string{"a.yaml": volume}, []string{"a.yaml", "./a.yaml", "a.yaml"}},
		"a file of a folder":          {map[string]string{"dir/a.yaml": volume}, []string{"dir", "dir/a.yaml", "dir"}},
		"a folder of a file":          {map[string]string{"dir/a.yaml": volume}, []string{"dir/a.yaml", "dir"}},
		"a file and its link":         {map[string]string{"a.yaml": volume, "b.yaml": "-> a.yaml"}, []string{"a.yaml", "b.yaml"}},
		"a hidden file by its name":   {map[string]string{".a.yaml": volume}, []string{".a.yaml"}},
		"beside the folder that it is in": {
			map[string]string{"dir/a.yaml": volume, "dir/b.yaml": "resourceTypes: [{name: other, idPrefix: other}]\n"}, []string{"dir/a.yaml", "--with", "dir"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			chdirToFiles(t, test.files)
			if got := run(t, append([]string{"check"}, test.args...)...); got.code != 0 || got.out+got.err != "" {
				t.Errorf("%+v", got)
			}
		})
	}
	chdirToFiles(t, map[string]string{"dir/a.txt": volume, "dir/.hidden.yaml": volume})
	if got := run(t, "check", "dir"); got.code != 2 || !strings.Contains(got.err, "no *.yaml files in dir") {
		t.Errorf("a folder without policies: %+v", got)
	}
}

func TestPolicyTestRunsAssertionsBesidePolicy(t *testing.T) {
	chdirToFiles(t, map[string]string{"policies/a.yaml": volume, "policies/a_test.yaml": assertions})
	if got := run(t, "test", "policies"); got.code != 0 || !strings.Contains(got.out, "1 passed, 0 failed") {
		t.Errorf("%+v", got)
	}
}

func TestSampleFoldersPass(t *testing.T) {
	samples := filepath.Join("..", "..", "..", "..", "deploy", "samples")
	for _, args := range [][]string{{"check", "policy"}, {"test", "policy"}, {"check", "policydocuments"}} {
		if got := run(t, args[0], filepath.Join(samples, args[1])); got.code != 0 {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// TestHelpExamplesRun runs each example, in a folder with the files that it names.
func TestHelpExamplesRun(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "policy", "testdata", "loadbalancer", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	assertions, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "deploy", "samples", "policy", "assertions", "loadbalancer.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policy := string(text)
	first, rest, _ := strings.Cut(policy, "\n---\n")
	chdirToFiles(t, map[string]string{
		"policies/loadbalancer.yaml": policy, "policies/tests/access.yaml": string(assertions), "main/policies/loadbalancer.yaml": policy,
		"a.yaml": first, "b.yaml": rest, "others/a.yaml": first, "mine.yaml": rest,
	})
	if got := run(t, "compile", "policies/", "--target", "openfga-dsl", "--out", "model.fga"); got.code != 0 {
		t.Fatal(got)
	}
	server := func(*pflag.FlagSet) policycommand.DialFunc { return nil }
	ran := 0
	for _, cmd := range policycommand.New(server).Commands() {
		for _, example := range helpExamples(cmd) {
			ran++
			if got := run(t, strings.Fields(example)...); got.code != 0 && !strings.Contains(got.out, "W-DEEP-RECURSION") {
				t.Errorf("entail policy %s: %+v", example, got)
			}
		}
	}
	if ran < 12 {
		t.Errorf("only %d examples", ran)
	}
}

// helpExamples returns the examples of a command that need no server, without pipes and redirections.
func helpExamples(cmd *cobra.Command) []string {
	var all []string
	for line := range strings.Lines(cmd.Example) {
		line, is := strings.CutPrefix(strings.TrimSpace(line), "entail policy ")
		if is && !strings.Contains(line, " mine.yaml --store") {
			all = append(all, strings.ReplaceAll(regexp.MustCompile(` *[|>#].*`).ReplaceAllString(line, ""), "'", ""))
		}
	}
	return all
}
