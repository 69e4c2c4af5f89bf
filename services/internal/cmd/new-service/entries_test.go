package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Here it shows in a second that a file which lists services has another form than is expected.
func TestEveryListOfServicesTakesOneMore(t *testing.T) {
	s, err := newService(checkout, "example-sync")
	if err != nil {
		t.Fatal(err)
	}
	files, err := s.entries(checkout)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		before, err := checkout.read(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if added := len(f.data) - len(before); added < len(s.Name) || !bytes.Contains(f.data, []byte(s.Name)) && !bytes.Contains(f.data, []byte(s.Type)) {
			t.Errorf("%s has %d bytes more, and nothing about %s", f.path, added, s.Name)
		}
	}
}

// copyEntries is a tree with nothing but what a new service is entered in, or made of.
func copyEntries(t *testing.T) tree {
	t.Helper()
	s, err := newService(checkout, "example-sync")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := s.entries(checkout)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"services/internal/go.mod", "services/internal/go.sum", "deploy/base/namespace.yaml", "proto/entail/tuple/v1/tuple.proto"}
	for _, e := range entries {
		paths = append(paths, e.path)
	}
	copied := tree(t.TempDir())
	for _, path := range paths {
		data, err := checkout.read(path)
		if err == nil {
			err = copied.write([]file{{path, data}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

func TestServicesAreAddedOneAfterAnother(t *testing.T) {
	copied := copyEntries(t)
	for _, name := range []string{"example-sync", "audit"} {
		if err := run([]string{string(copied), name}); err != nil {
			t.Fatal(err)
		}
		for _, room := range []string{
			"config.go", "state.go", "plan/plan.go", "plan/plan_test.go", "reconcile.go", "apply.go", "status.go", "server.go", "metrics.go",
			strings.ReplaceAll(name, "-", "") + ".go", "cmd/" + name + "/main.go", "README.md", "go.mod", "go.sum",
		} {
			if path := filepath.Join("services", name, room); !has(copied, path) {
				t.Errorf("there is no %s", path)
			}
		}
		if err := run([]string{string(copied), name}); err == nil || !strings.Contains(err.Error(), "is taken") {
			t.Errorf("%s, once more: %v", name, err)
		}
	}
	for path, want := range map[string]string{
		"go.work":             "./gen ./services/audit ./services/entail ./services/example-sync ./services/implied-role",
		"docker-compose.yaml": "system:serviceaccount:entail-system:example-sync - --user=system:serviceaccount:entail-system:audit ports:",
		"Makefile":            "services/opensearch-sync services/example-sync services/audit services/entail deploy/e2e",
	} {
		data, err := copied.read(path)
		if err != nil || !strings.Contains(strings.Join(strings.Fields(string(data)), " "), want) {
			t.Errorf("%s does not list %s: %v\n%s", path, want, err, data)
		}
	}
}

func TestNothingIsWrittenWhenOneListHasAnotherForm(t *testing.T) {
	copied := copyEntries(t)
	if err := copied.write([]file{{"Makefile", []byte("all:\n")}}); err != nil {
		t.Fatal(err)
	}
	err := run([]string{string(copied), "example-sync"})
	if err == nil || !strings.Contains(err.Error(), "Makefile") || has(copied, "services/example-sync") {
		t.Errorf("refused with %v", err)
	}
}

func has(t tree, path string) bool {
	_, err := os.Lstat(filepath.Join(string(t), path))
	return err == nil
}
