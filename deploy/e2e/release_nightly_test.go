//go:build e2e && nightly

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReleaseIsReproducible makes a release in the checkout and one in a copy without Git, and compares their checksums.
func TestReleaseIsReproducible(t *testing.T) {
	here, there := checksums(t, makeRelease(t, root)), checksums(t, makeRelease(t, copyOfCheckout(t)))
	if here != there || strings.Count(here, "\n") < 4 {
		t.Errorf("checksums of a release elsewhere: got\n%s\nwant\n%s", there, here)
	}
}

// TestImageFilesAreReproducible makes the files of an image in the checkout and in a copy without Git, and compares them.
func TestImageFilesAreReproducible(t *testing.T) {
	setCommit(t)
	t.Setenv("VERSION", releaseVersion)
	files := func(checkout string) []string {
		dir := t.TempDir()
		command(t, checkout, "scripts/image-files.sh", dir, "watcher")
		lines := strings.Split(command(t, dir, "find", ".", "-printf", "%M %T@ %s %p\n", "-type", "f", "-exec", "sha256sum", "{}", ";"), "\n")
		slices.Sort(lines)
		return lines
	}
	here, there := files(root), files(copyOfCheckout(t))
	if !slices.Equal(here, there) || len(here) < 10 {
		t.Errorf("files of an image elsewhere: got\n%s\n\nwant\n%s", strings.Join(there, "\n"), strings.Join(here, "\n"))
	}
}

// checksums returns the checksums of a release.
func checksums(t *testing.T, archives string) string {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(archives, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return string(sums)
}

// copyOfCheckout copies every file that Git has or would add to a folder without Git.
func copyOfCheckout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := strings.TrimSuffix(command(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00")
	for path := range strings.SplitSeq(files, "\x00") {
		info, err := os.Stat(filepath.Join(root, path))
		if os.IsNotExist(err) {
			continue // The file is deleted, and the deletion is not committed yet.
		}
		if err == nil {
			err = copyFile(filepath.Join(root, path), filepath.Join(dir, path), info.Mode()&fs.ModePerm)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// copyFile copies a file, and creates its parent folders.
func copyFile(from, to string, mode fs.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	return os.WriteFile(to, data, mode)
}
