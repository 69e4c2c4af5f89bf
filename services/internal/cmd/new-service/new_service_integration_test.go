//go:build integration

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/devserver"
)

// example is the name of a service that nobody needs.
const example = "example-sync"

// copied is a copy of all that Git knows in this checkout, or would, with the tools of the checkout.
// It is always at the same place, so that what was compiled there once is not compiled again.
func copied(t *testing.T) string {
	t.Helper()
	root, err := devserver.Checkout()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(root, ".tmp", "new-service")
	t.Cleanup(func() {
		if err := os.RemoveAll(copied); err != nil {
			t.Error(err)
		}
	})
	if err := os.RemoveAll(copied); err != nil {
		t.Fatal(err)
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(command(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		from, err := os.Stat(filepath.Join(root, path))
		if os.IsNotExist(err) {
			continue // It is deleted, but that is not committed yet.
		}
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := tree(copied).write([]file{{path, data}}); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(copied, path), from.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{".tmp/bin", ".tmp/tools", "bin/kube-local"} {
		link(t, filepath.Join(root, path), filepath.Join(copied, path))
	}
	return copied
}

// link makes path lead to what the checkout has, or will have.
func link(t *testing.T, to, path string) {
	t.Helper()
	if filepath.Base(to) != "kube-local" {
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// command runs a program that has to succeed.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := try(t, dir, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// try runs a program as one would by hand, and returns what it says.
func try(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, []string{"GOWORK=off"}
	for _, variable := range os.Environ() {
		// What the make around this test was told is not for the one in the copy.
		if !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS=") && !strings.HasPrefix(variable, "GOWORK=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// What people get who make a service is as good as the services that there are: it passes all that
// is asked of these, and does something, of which its own test on real servers makes sure.
func TestANewServicePassesAllThatIsAskedOfServices(t *testing.T) {
	dir := copied(t)
	command(t, dir, "make", "tools", "new-service", "NAME="+example)
	module, shared := "services/"+example, "services/internal"
	onServers := []string{"scripts/test-events.sh", "unit,integration", module} // With the flags of CI, for which most is compiled.
	inMemory := []string{"go", "test", "-race", "-gcflags=modernc.org/...=-race=false -d=checkptr=0"}
	for name, step := range map[string]struct {
		dir     string
		command []string
	}{
		"its contract is formatted":       {"", []string{".tmp/bin/buf", "format", "--diff", "--exit-code", "proto"}},
		"its contract has good style":     {"", []string{".tmp/bin/buf", "lint"}},
		"its module stands alone":         {"", []string{"scripts/modules.sh", module}},
		"its code has good style":         {"", []string{"scripts/lint.sh", module}},
		"its tests pass on real servers":  {"", onServers},
		"its place among others is right": {shared, append(inMemory, "./permission", "./rbac", "./shape", "./topology", "./workload")},
		"its entries have good style":     {shared, []string{"../../.tmp/bin/golangci-lint", "run", "--allow-parallel-runners", "./rbac", "./topology"}},
		"overlays have it":                {"deploy/e2e", []string{"go", "test", "."}},
		"chaos strikes it, too":           {"deploy/chaos", []string{"go", "vet", "./internal/system"}},
	} {
		t.Run(name, func(t *testing.T) {
			command(t, filepath.Join(dir, step.dir), step.command[0], step.command[1:]...)
		})
	}
	t.Run("its binary runs", func(t *testing.T) {
		command(t, dir, "make", "bin/"+example)
		if out := command(t, dir, "bin/"+example, "--version"); !strings.HasPrefix(out, example+" ") {
			t.Errorf("it says %q", out)
		}
	})
	t.Run("its tests on real servers fail when it does nothing", func(t *testing.T) {
		replace(t, filepath.Join(dir, module, "reconcile.go"), "return r.applier.apply(ctx, p, in, plan.Make(in))", "_ = ctx\n_ = plan.Make(in)\nreturn nil")
		out, err := try(t, dir, onServers[0], onServers[1:]...)
		if err == nil || !strings.Contains(out, "--- FAIL: TestAStoreIsToldWhetherItSaysWhatItIsFor") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// replace changes the one place of a file that has a text.
func replace(t *testing.T, path, text, by string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || strings.Count(string(data), text) != 1 {
		t.Fatalf("%s has not one %q: %v", path, text, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), text, by, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
