//go:build e2e

package e2e

import (
	"regexp"
	"testing"
)

func TestVersionNamesCommit(t *testing.T) {
	out, err := entail(t, "version").Output()
	if err != nil || !regexp.MustCompile(`^entail \S+ [0-9a-f]{40} `).Match(out) {
		t.Errorf("version is %q, %v", out, err)
	}
}
