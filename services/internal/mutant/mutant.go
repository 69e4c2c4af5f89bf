// Package mutant checks that tests detect bugs. It puts given bugs, called mutants, into the code one at a time, and
// requires that a test fails for each. It changes no file of the checkout.
package mutant

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Mutant is a bug that compiles. Its elements are a file below the root of all mutants, a text that occurs once in
// this file, and the replacement.
type Mutant [3]string

// KillAll requires that at least one suite fails for each mutant. A suite is a list of arguments for `go test`;
// without a mutant it must pass. ENTAIL_SLICE selects some of the mutants, but all must match the code.
func KillAll(t *testing.T, root string, mutants map[string]Mutant, suites ...[]string) {
	t.Helper()
	names, err := selectSlice(slices.Collect(maps.Keys(mutants)), os.Getenv(sliceVariable))
	if err != nil {
		t.Fatal(err)
	}
	CheckMutantsApply(t, root, mutants)
	for _, suite := range suites {
		if out, err := goTest(t, suite...).CombinedOutput(); err != nil {
			t.Fatalf("the tests do not pass without a mutant:\n%s", out)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { mutants[name].killMutant(t, root, suites) })
	}
}

// killMutant runs the suites with one mutant until one of them fails.
func (m Mutant) killMutant(t *testing.T, root string, suites [][]string) {
	t.Helper()
	overlay := m.writeOverlay(t, root)
	for _, suite := range suites {
		out, err := goTest(t, append([]string{"-failfast", "-overlay", overlay}, suite...)...).CombinedOutput()
		if bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")) {
			t.Fatalf("it does not compile:\n%s", out)
		}
		if err != nil {
			t.Logf("it dies of %q", suite)
			return
		}
	}
	t.Error("it survives every test")
}

// CheckMutantsApply requires that each mutant matches the current code. A change of the code must update its mutants.
func CheckMutantsApply(t *testing.T, root string, mutants map[string]Mutant) {
	t.Helper()
	for name, m := range mutants {
		if m[1] == m[2] {
			t.Errorf("%s: it is the code as it is", name)
		}
		m.readSource(t, root, name)
	}
}

// timeout bounds one run of a suite. A mutant that makes a test hang also counts as detected.
const timeout = "5m"

func goTest(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), "go", append([]string{"test", "-vet=off", "-timeout", timeout}, args...)...)
}

// readSource returns the path and the text of the mutant's file.
func (m Mutant) readSource(t *testing.T, root, name string) (file, text string) {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(root, m[0]))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(data), m[1]) != 1 {
		t.Fatalf("%s: %s does not have %q once: the code has changed, and the mutant must follow", name, m[0], m[1])
	}
	return file, string(data)
}

// writeOverlay writes the file with the bug and returns the overlay file that makes the compiler use it.
func (m Mutant) writeOverlay(t *testing.T, root string) string {
	t.Helper()
	file, text := m.readSource(t, root, t.Name())
	dir := t.TempDir()
	changed := filepath.Join(dir, filepath.Base(file))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{changed: []byte(strings.Replace(text, m[1], m[2], 1)), filepath.Join(dir, "overlay.json"): overlay} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "overlay.json")
}
