// Package golden compares files of the checkout with what the code generates. The flag -update of the test writes them.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the generated files") //nolint:gochecknoglobals // The flag of a test.

// CheckFile fails the test unless the file holds want. With -update it writes the file instead.
func CheckFile(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs from what the code generates: %v; run `make generate`", file, err)
	}
}
