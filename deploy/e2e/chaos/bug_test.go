//go:build e2e && mutants

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/campaign"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/nemesis"
)

// campaign returns the campaign that must find a bug. `make nightly` looks for longer, and with blows after
// which a healthy system is at rest soon.
func (m mutant) campaign(t *testing.T) campaign.Config {
	t.Helper()
	cfg := ciCampaign(t)
	if m.foundBy == byNightly {
		cfg.For, cfg.Blows = 8*time.Minute, blowsNamed(t, nemesis.KillServices)
	}
	cfg.System.Binaries = map[string]string{m.service: m.build(t, cfg.System.Checkout)}
	return cfg
}

func TestABugPutInOnPurposeIsFound(t *testing.T) {
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			report := runCampaign(t, m.campaign(t))
			if len(report.Findings) == 0 {
				t.Fatalf("got no finding in %d rounds, want one of %v", report.Rounds, m.shows)
			}
			for _, v := range report.Findings[0].Violations {
				if !slices.Contains(m.shows, v.Kind) {
					t.Errorf("got a finding of the kind %q, want one of %v", v.Kind, m.shows)
				}
			}
		})
	}
}

// build builds the service with its bug. The checkout stays as it is.
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
