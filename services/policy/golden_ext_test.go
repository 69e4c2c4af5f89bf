package policy_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/spicedb"
	"github.com/entail-dev/entail/services/policy/syntax"
)

const fixture = "testdata/loadbalancer"

// compiled returns all outputs of a policy, by the names of the files in testdata.
func compiled(t *testing.T, p *policy.Policy) map[string][]byte {
	t.Helper()
	out := map[string][]byte{"canonical.yaml": policytest.CanonicalYAML(p)}
	keep := func(name string, content []byte, found policy.Diagnostics) {
		t.Helper()
		if len(found) > 0 {
			t.Fatalf("%s: %v", name, found)
		}
		out[name] = content
	}
	content, found := spicedb.CompileSchema(p, spicedb.Options{})
	keep("schema.zed", content, found)
	content, found = openfga.CompileDSL(p, openfga.Options{})
	keep("model.fga", content, found)
	content, found = openfga.CompileJSON(p, openfga.Options{})
	keep("model.json", content, found)
	modules, found := openfga.CompileModules(p, openfga.Options{})
	keep("modules/fga.mod", openfga.ModFile(modules), found)
	for _, m := range modules {
		out["modules/"+m.File] = m.Content
	}
	return out
}

func readFixture(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(fixture, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func expectGolden(t *testing.T, files []syntax.File) {
	t.Helper()
	p, found := check.Files(files, syntax.ParseLimits{}, policy.Options{})
	if len(found) > 0 {
		t.Fatal(found)
	}
	outputs := compiled(t, p)
	if len(outputs) != 9 {
		t.Errorf("there are %d outputs", len(outputs))
	}
	for name, content := range outputs {
		if want := readFixture(t, name); !bytes.Equal(content, want) {
			t.Fatalf("%s is\n%s\nwant\n%s", name, content, want)
		}
	}
}

func TestExampleCompilesEquallyInAnyOrderAndCase(t *testing.T) {
	t.Parallel()
	text := string(readFixture(t, "policy.yaml"))
	documents := strings.Split(text, "---\n")
	random := rand.New(rand.NewPCG(policytest.FirstSeed(t), 2))
	for name, spell := range map[string]func(string) string{
		"as written": func(key string) string { return key }, "lower": strings.ToLower, "upper": strings.ToUpper,
		"mixed": func(key string) string {
			mixed := []byte(strings.ToLower(key))
			for i := range mixed {
				if random.IntN(2) == 0 {
					mixed[i] = strings.ToUpper(key)[i]
				}
			}
			return string(mixed)
		},
	} {
		for _, order := range permutations(len(documents)) {
			var texts []string
			for _, i := range order {
				texts = append(texts, respelt(documents[i], spell))
			}
			expectGolden(t, []syntax.File{{Name: "stream-" + name, Content: []byte(strings.Join(texts, "---\n"))}})
			var files []syntax.File
			for i, text := range texts {
				files = append(files, syntax.File{Name: string(rune('d' - i)), Content: []byte(text)})
			}
			expectGolden(t, files)
		}
	}
}

func TestCompileIgnoresOrderOfLists(t *testing.T) {
	t.Parallel()
	documents, _ := syntax.ParseFiles([]syntax.File{{Content: readFixture(t, "policy.yaml")}}, syntax.ParseLimits{})
	want := outputsOf(t, documents)
	random := rand.New(rand.NewPCG(policytest.FirstSeed(t), 4))
	for range 100 {
		for _, d := range documents {
			shuffle(random, d.ResourceTypes)
			shuffle(random, d.Unions)
			shuffle(random, d.Actions)
			shuffle(random, d.Bindings)
			for _, u := range d.Unions {
				shuffle(random, u.Members)
			}
			for _, b := range d.Bindings {
				shuffle(random, b.Conditions)
			}
		}
		shuffle(random, documents)
		for name, content := range outputsOf(t, documents) {
			if !bytes.Equal(content, want[name]) {
				t.Fatalf("the order of lists changed %s:\n%s", name, content)
			}
		}
	}
}

func TestCanonicalYAMLCompilesEqually(t *testing.T) {
	t.Parallel()
	p, found := check.Files([]syntax.File{{Content: readFixture(t, "canonical.yaml")}}, syntax.ParseLimits{}, policy.Options{})
	if len(found) > 0 {
		t.Fatal(found)
	}
	for name, content := range compiled(t, p) {
		if !strings.HasPrefix(name, "modules/") && !bytes.Equal(content, readFixture(t, name)) {
			t.Errorf("%s differs:\n%s", name, content)
		}
	}
}

func outputsOf(t *testing.T, documents []*syntax.Document) map[string][]byte {
	t.Helper()
	p, found := check.Documents(documents, policy.Options{})
	if len(found) > 0 {
		t.Fatal(found)
	}
	return compiled(t, p)
}

func shuffle[T any](random *rand.Rand, list []T) {
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// respelt changes the spelling of the keys of a document.
func respelt(document string, spell func(string) string) string {
	for _, key := range []string{
		"resourceTypes", "unions", "actionBindings", "actions", "name", "idPrefix", "relationships", "relation", "targettypes",
		"actionName", "typeName", "conditions", "roleBinding", "relationshipAction",
	} {
		for _, before := range []string{" ", "\n"} {
			document = strings.ReplaceAll(document, before+key+":", before+spell(key)+":")
		}
	}
	return document
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, shorter := range permutations(n - 1) {
		for i := range n {
			all = append(all, append(append(append([]int{}, shorter[:i]...), n-1), shorter[i:]...))
		}
	}
	return all
}
