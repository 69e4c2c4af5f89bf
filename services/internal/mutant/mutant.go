// Package mutant puts bugs into code on purpose, and demands of tests that they see each of them:
// tests that pass whatever the code does are worth nothing.
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

// Mutant is code with a bug: what compiles, and decides something else. It names a file below the
// root of all mutants, what stands there once, and what that becomes.
type Mutant [3]string

// Kill demands that each mutant dies of one of the suites, in this order. A suite is what `go test`
// is told to run; each must pass without a mutant. ENTAIL_SLICE selects some of the mutants, but all
// must fit the code.
func Kill(t *testing.T, root string, mutants map[string]Mutant, suites ...[]string) {
	t.Helper()
	names, err := sliceOf(slices.Collect(maps.Keys(mutants)), os.Getenv(sliceVariable))
	if err != nil {
		t.Fatal(err)
	}
	Apply(t, root, mutants)
	for _, suite := range suites {
		if out, err := goTest(t, suite...).CombinedOutput(); err != nil {
			t.Fatalf("the tests do not pass without a mutant:\n%s", out)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { mutants[name].kill(t, root, suites) })
	}
}

// kill runs the suites against one mutant until one of them fails.
func (m Mutant) kill(t *testing.T, root string, suites [][]string) {
	t.Helper()
	overlay := m.overlay(t, root)
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

// Apply demands that each mutant is one of the code as it is: whoever changes the code changes it, too.
func Apply(t *testing.T, root string, mutants map[string]Mutant) {
	t.Helper()
	for name, m := range mutants {
		if m[1] == m[2] {
			t.Errorf("%s: it is the code as it is", name)
		}
		m.read(t, root, name)
	}
}

// timeout bounds one run of a suite. A mutant that makes a test hang dies of it.
const timeout = "5m"

func goTest(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), "go", append([]string{"test", "-vet=off", "-timeout", timeout}, args...)...)
}

// read reads the file that a mutant names.
func (m Mutant) read(t *testing.T, root, name string) (file, text string) {
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

// overlay writes the file with its bug, and what makes the compiler take it in place of the true one.
func (m Mutant) overlay(t *testing.T, root string) string {
	t.Helper()
	file, text := m.read(t, root, t.Name())
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
