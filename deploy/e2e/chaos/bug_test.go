//go:build e2e && mutants

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/campaign"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/nemesis"
)

func TestABugPutInOnPurposeIsFound(t *testing.T) {
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			cfg := configured(t)
			var unknown []string
			if cfg.Blows, unknown = nemesis.Named([]string{nemesis.KillServices}); len(unknown) > 0 {
				t.Fatal(unknown)
			}
			// Enough for what is at rest within a few seconds after such a blow.
			cfg.For, cfg.Settle = 8*time.Minute, 45*time.Second
			cfg.System.Binaries = map[string]string{m.service: m.build(t, cfg.System.Checkout)}
			report, err := campaign.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Findings) == 0 {
				t.Errorf("not found in %d rounds", report.Rounds)
			}
		})
	}
}

// build makes the service with its bug, in a tree that stays as it is.
func (m mutant) build(t *testing.T, root string) string {
	t.Helper()
	file := filepath.Join(root, "services", m.file)
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: filepath.Join(dir, "mutant.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{"mutant.go": []byte(m.changed(t, root)), "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(dir, path), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, m.service)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./"+m.service+"/cmd/"+m.service)
	build.Dir = filepath.Join(root, "services")
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", m.service, err, out)
	}
	return binary
}
