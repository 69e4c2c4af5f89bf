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

// ciRuns bounds the CI campaigns that may be needed to find a bug. Each one draws other operations.
const ciRuns = 3

// campaigns returns the campaigns, one of which must find the bug.
func (m mutant) campaigns(t *testing.T) []campaign.Config {
	t.Helper()
	cfg := ciCampaign(t)
	cfg.System.Binaries = map[string]string{m.service: m.build(t, cfg.System.Checkout)}
	if m.foundBy == byNightly {
		cfg.For, cfg.Blows = 8*time.Minute, blowsNamed(t, nemesis.KillServices)
		return []campaign.Config{cfg}
	}
	runs := slices.Repeat([]campaign.Config{cfg}, ciRuns)
	for i := range runs {
		runs[i].Seed += uint64(i)
	}
	return runs
}

// find runs campaigns until one has a finding.
func find(t *testing.T, campaigns []campaign.Config) []campaign.Finding {
	t.Helper()
	for _, cfg := range campaigns {
		if found := runCampaign(t, cfg).Findings; len(found) > 0 {
			return found
		}
	}
	return nil
}

func TestCampaignFindsPlantedBug(t *testing.T) {
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			found := find(t, m.campaigns(t))
			if len(found) == 0 {
				t.Fatalf("got no finding, want one of %v", m.shows)
			}
			for _, v := range found[0].Violations {
				if !slices.Contains(m.shows, v.Kind) {
					t.Errorf("got a finding of the kind %q, want one of %v", v.Kind, m.shows)
				}
			}
		})
	}
}

// build builds the service with its bug. It does not change the checkout.
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
