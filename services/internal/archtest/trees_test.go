package archtest

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// update rewrites the files in testdata that hold today's counts and strings.
var update = flag.Bool("update", false, "write today's strings, and counts where they are lower, to testdata") //nolint:gochecknoglobals // The flag of a test.

// trees returns the package trees with their own counts, as paths from the root of the project.
func trees() []string {
	return []string{
		"deploy/e2e", "deploy/local", "services/entail", "services/implied-role", "services/internal", "services/opensearch-sync",
		"services/policy", "services/store-sync", "services/tuple-sync", "services/watcher", "services/webhook",
	}
}

// productFile is a Go file that is neither a test nor generated.
type productFile struct{ path, text string }

// productFiles returns the product files of a directory and of those below it.
func productFiles(t *testing.T, dir string) []productFile {
	t.Helper()
	var found []productFile
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir && (slices.Contains([]string{"vendor", "testdata", "gen", "node_modules"}, d.Name()) || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(text[:min(len(text), 600)]), "DO NOT EDIT") {
			found = append(found, productFile{path, string(text)})
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: got %d files, %v", dir, len(found), err)
	}
	return found
}
