//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const released = "v0.0.1-test"

// TestAnArchiveOfAReleaseNeedsNoCheckout makes a release for this machine, once here and once elsewhere without Git, and runs it.
func TestAnArchiveOfAReleaseNeedsNoCheckout(t *testing.T) {
	here := release(t, root)
	if there := release(t, exported(t)); !bytes.Equal(there, here) {
		t.Errorf("the same sources give other bytes elsewhere:\n%s\n%s", here, there)
	}
	made, dir := filepath.Join(os.Getenv("OUT"), ""), t.TempDir()
	suffix := released + "_" + runtime.GOOS + "_" + runtime.GOARCH
	command(t, made, "sha256sum", "--check", "SHA256SUMS")
	for _, program := range []string{"entail_", "kube-local_"} {
		command(t, dir, "tar", "-xzf", filepath.Join(made, program+suffix+".tar.gz"), "--strip-components=1")
		var bill struct{ Components []struct{ Name string } }
		if err := json.Unmarshal([]byte(command(t, made, "cat", program+suffix+".cdx.json")), &bill); err != nil || len(bill.Components) < 50 {
			t.Errorf("%s is made of %v, %v", program, bill, err)
		}
	}
	t.Setenv("ENTAIL_BIN", dir)
	if said := command(t, dir, "./entail", "version"); !strings.Contains(said, released) {
		t.Errorf("it says it is %s", said)
	}
	m := upIn(t, t.TempDir(), ".entail", "--samples", "builtin")
	stores := m.objects(t).Resource(resource("stores"))
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })
	m.stop(t, syscall.SIGTERM)

	command(t, dir, "./entail", "manifests", "--dir", "manifests")
	for _, overlay := range []string{"dev", "ha"} {
		if from := built(t, filepath.Join(dir, "manifests", "overlays", overlay)); len(from) != len(built(t, filepath.Join("..", "overlays", overlay))) {
			t.Errorf("overlay %s has %d objects", overlay, len(from))
		}
	}
}

// TestAnImageIsOfTheSameFilesWhereverTheyAreMade makes what is in an image, once here and once elsewhere without Git.
func TestAnImageIsOfTheSameFilesWhereverTheyAreMade(t *testing.T) {
	committed(t)
	t.Setenv("VERSION", released)
	files := func(checkout string) string {
		dir := t.TempDir()
		command(t, checkout, "scripts/image-files.sh", dir, "watcher")
		return command(t, dir, "find", ".", "-printf", "%M %T@ %s %p\n", "-type", "f", "-exec", "sha256sum", "{}", ";")
	}
	here := strings.Split(files(root), "\n")
	slices.Sort(here)
	there := strings.Split(files(exported(t)), "\n")
	slices.Sort(there)
	if !slices.Equal(here, there) || len(here) < 10 {
		t.Errorf("the same sources give other files elsewhere:\n%s\n\n%s", strings.Join(here, "\n"), strings.Join(there, "\n"))
	}
}

// committed is for what is built as of a commit that has what is in the tree.
func committed(t *testing.T) {
	t.Helper()
	t.Setenv("COMMIT", strings.Repeat("c", 40))
	t.Setenv("MODIFIED", "")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
}

// release makes one of a checkout in a folder, OUT from now on, and returns its sums.
func release(t *testing.T, checkout string) []byte {
	t.Helper()
	t.Setenv("OUT", t.TempDir())
	committed(t)
	command(t, checkout, "scripts/release.sh", released, runtime.GOOS+"/"+runtime.GOARCH)
	sums, err := os.ReadFile(filepath.Join(os.Getenv("OUT"), "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// exported is a copy of what Git knows here, or would.
func exported(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path := range strings.SplitSeq(strings.TrimSuffix(command(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		from := filepath.Join(root, path)
		info, err := os.Stat(from)
		if os.IsNotExist(err) {
			continue // It is deleted, but that is not committed yet.
		}
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o750)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, path), data, info.Mode()&fs.ModePerm)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// command runs a program that has to succeed.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &said)
	}
	return string(out)
}
