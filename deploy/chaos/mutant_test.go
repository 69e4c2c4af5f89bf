//go:build e2e

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entail-dev/entail/deploy/chaos/internal/campaign"
	"github.com/entail-dev/entail/deploy/chaos/internal/nemesis"
)

// mutant is a service with a bug put in on purpose.
type mutant struct {
	service string
	// file is below services/; each text of before becomes that of after.
	file          string
	before, after []string
}

func mutants() map[string]mutant {
	return map[string]mutant{
		"a dropped deletion": {
			service: "implied-role", file: "internal/topology/streams.go",
			before: []string{"\tchange.PublishedAt = meta.Timestamp\n"},
			after:  []string{"\tchange.Deleted = change.Deleted && change.Key.Resource != \"impliedroles\"\n"},
		},
		"a forgotten tuple": {
			service: "tuple-sync", file: "internal/fga/write.go",
			before: []string{"range slices.Chunk(wanted.without(remove), c.maxTuples)"},
			after:  []string{"range slices.Chunk(wanted.without(remove[min(1, len(remove)/2):]), c.maxTuples)"},
		},
		// What was revoked long ago is there again for a moment; at rest nothing is to be seen of it.
		"a grant after revocation": {
			service: "tuple-sync", file: "internal/fga/write.go",
			before: []string{"\t\"slices\"\n", "\tfor chunk := range slices.Chunk(wanted.without(remove), c.maxTuples) {\n"},
			after: []string{"\t\"slices\"\n\t\"time\"\n", `	for _, late := range remove[:min(1, len(remove))] {
		ctx := context.WithoutCancel(ctx)
		time.AfterFunc(20*time.Second, func() {
			if _, there, err := c.ReadTuple(ctx, storeID, late); there || err != nil {
				return
			}
			_ = c.add(ctx, storeID, "", []*openfgav1.TupleKey{late})
			<-time.After(3 * time.Second)
			_ = c.remove(ctx, storeID, tuples{}.without([]*openfgav1.TupleKey{late}))
		})
	}
	for chunk := range slices.Chunk(wanted.without(remove), c.maxTuples) {
`},
		},
	}
}

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
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text)
	for i, before := range m.before {
		if strings.Count(changed, before) != 1 {
			t.Fatalf("%s does not have %q once: the code has changed, and the mutant must follow", m.file, before)
		}
		changed = strings.Replace(changed, before, m.after[i], 1)
	}
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: filepath.Join(dir, "mutant.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{"mutant.go": []byte(changed), "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(dir, path), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, m.service)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./cmd/"+m.service)
	build.Dir = filepath.Join(root, "services", m.service)
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", m.service, err, out)
	}
	return binary
}
