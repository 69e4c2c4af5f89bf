//go:build unix

package opensearch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStartNamesUnusableDirectory(t *testing.T) {
	open := serverDir(t)
	closed := filepath.Join(open, "closed")
	inside := filepath.Join(closed, "inside")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := checkServerUserCanTraverse(inside); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := checkServerUserCanTraverse(inside); err == nil || !strings.Contains(err.Error(), "chmod o+x "+closed) {
		t.Errorf("got %v; want what to do", err)
	}
	if err := checkServerUserCanTraverse(closed); err != nil {
		t.Errorf("the last directory is handed over: %v", err)
	}
}
