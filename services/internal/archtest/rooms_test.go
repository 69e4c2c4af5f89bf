package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/topology"
)

// All services have the same file names, so a reader who has seen one service finds everything in the others.
func TestEveryServiceHasTheSameFiles(t *testing.T) {
	for _, name := range serviceNames() {
		for _, file := range []string{strings.ReplaceAll(name, "-", "") + ".go", "config.go", "README.md", "cmd/" + name + "/main.go"} {
			if _, err := os.Stat(filepath.Join(root, name, file)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, s := range topology.DurableServices() {
		rooms := files(t, filepath.Join(root, s.Name))
		for _, room := range []string{"state.go", "reconcile.go", "apply.go", "status.go", "server.go", "metrics.go"} {
			if !slices.Contains(rooms, room) { // A service with several subjects has these files per subject.
				t.Errorf("%s has no %s", s.Name, room)
			}
		}
	}
}

// A rights suite makes a service's package fail if no test uses one of its rights.
func TestEveryServiceHasARightsSuite(t *testing.T) {
	for _, name := range serviceNames() {
		file := filepath.Join(root, name, "rights_integration_test.go")
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "testenv.RightsSuite{") {
			t.Errorf("%s declares no testenv.RightsSuite: %v", file, err)
		}
	}
}

// Every reconciler has a plan package, which decides without I/O.
func TestEveryReconcilerHasPurePlan(t *testing.T) {
	for _, s := range topology.DurableServices() {
		all := withReconcile(t, filepath.Join(root, s.Name))
		for _, dir := range all {
			door := func(other string) bool { return filepath.Dir(other) == dir }
			pure := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
			if !slices.ContainsFunc(all, door) && !pure("plan") && !pure("infer") {
				t.Errorf("%s has no plan", dir)
			}
		}
	}
}

// serviceNames returns the names of the watcher and of all services that read from NATS.
func serviceNames() []string {
	names := []string{topology.Watcher}
	for _, s := range topology.DurableServices() {
		names = append(names, s.Name)
	}
	return names
}

// files returns the names of the files below a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A service without a durable consumer writes nothing, so it needs fewer files.
func TestEveryReaderHasItsFiles(t *testing.T) {
	for _, s := range topology.ReaderServices() {
		rooms := files(t, filepath.Join(root, s.Name))
		for _, room := range []string{s.Name + ".go", "config.go", "README.md", "main.go", "state.go", "server.go"} {
			if !slices.Contains(rooms, room) {
				t.Errorf("%s has no %s", s.Name, room)
			}
		}
	}
}

// A service that is missing in one of these files is not built, deployed or tested.
func TestEveryServiceIsInAllLists(t *testing.T) {
	for _, name := range serviceNames() {
		for file, entry := range map[string]string{
			"Makefile":                           " bin/" + name,
			".golangci.yml":                      `["**/services/` + name + `/**"]`,
			"deploy/base/" + name + "/rbac.yaml": "entail-" + name,
			"services/entail/internal/allinone/config.go": `"github.com/entail-dev/entail/services/` + name + `"`,
			"deploy/e2e/chaos/internal/system/service.go": `{Name: "` + name + `"`,
		} {
			data, err := os.ReadFile(filepath.Join(root, "..", file))
			if err != nil || !strings.Contains(string(data), entry) {
				t.Errorf("%s has no %q: %v", file, entry, err)
			}
		}
	}
}
