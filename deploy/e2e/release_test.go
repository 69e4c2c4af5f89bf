//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// releaseVersion is the version of the releases that tests make.
const releaseVersion = "v0.0.1-test"

// TestReleaseArchiveRunsWithoutCheckout makes a release for this machine, and runs it in a folder that has nothing else.
func TestReleaseArchiveRunsWithoutCheckout(t *testing.T) {
	archives := makeRelease(t, root)
	dir := t.TempDir()
	suffix := releaseVersion + "_" + runtime.GOOS + "_" + runtime.GOARCH
	command(t, archives, "sha256sum", "--check", "SHA256SUMS")
	for _, program := range []string{"entail_", "kube-local_"} {
		command(t, dir, "tar", "-xzf", filepath.Join(archives, program+suffix+".tar.gz"), "--strip-components=1")
		var bill struct{ Components []struct{ Name string } }
		text := command(t, archives, "cat", program+suffix+".cdx.json")
		if err := json.Unmarshal([]byte(text), &bill); err != nil || len(bill.Components) < 50 {
			t.Errorf("bill of materials of %s: got %d components, %v, want at least 50", program, len(bill.Components), err)
		}
	}
	t.Setenv("ENTAIL_BIN", dir)
	if version := command(t, dir, "./entail", "version"); !strings.Contains(version, releaseVersion) {
		t.Errorf("entail version: got %q, want %s in it", version, releaseVersion)
	}
	m := upIn(t, t.TempDir(), ".entail", "--samples", "builtin")
	stores := m.objects(t).Resource(resource("stores"))
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })
	m.stop(t, syscall.SIGTERM)

	command(t, dir, "./entail", "manifests", "--dir", "manifests")
	for _, overlay := range []string{"dev", "ha"} {
		got := len(built(t, filepath.Join(dir, "manifests", "overlays", overlay)))
		if want := len(built(t, filepath.Join("..", "overlays", overlay))); got != want {
			t.Errorf("overlay %s of the archive: got %d objects, want %d", overlay, got, want)
		}
	}
}

// makeRelease makes a release of a checkout and returns the folder of its archives.
func makeRelease(t *testing.T, checkout string) string {
	t.Helper()
	out := t.TempDir()
	t.Setenv("OUT", out)
	setCommit(t)
	command(t, checkout, "scripts/release.sh", releaseVersion, runtime.GOOS+"/"+runtime.GOARCH)
	return out
}

// setCommit sets the commit for the build scripts, because a copy without Git has none.
func setCommit(t *testing.T) {
	t.Helper()
	t.Setenv("COMMIT", strings.Repeat("c", 40))
	t.Setenv("MODIFIED", "")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
}

// command runs a program that must succeed, and returns its output.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}
