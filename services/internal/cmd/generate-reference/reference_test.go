package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const checkout = "../../../.."

func TestThePagesSayWhatCodeAndCRDsSay(t *testing.T) {
	for page, c := range map[string]struct {
		write func(string) (string, error)
		want  []string
	}{
		"kinds.md": {kindsPage, []string{
			"## Store\n", "## ImpliedRoles\n", "`core.platform-mesh.io/v1alpha1`, cluster, `kubectl get stores`", "| *`spec.coreModule`* | string |", "| `status.conditions` | list of object |",
		}},
		"metrics.md": {metricsPage, []string{"| `entail_dead_letters` | Messages that services have given up | watcher |", "`entail_implied_rules`", "`authz_cache_hits_total`", "`entail_messages_pending`"}},
	} {
		text, err := c.write(checkout)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q", page, want)
			}
		}
		if shipped, err := os.ReadFile(filepath.Join(checkout, "docs/reference", page)); err != nil || string(shipped) != header+text {
			t.Errorf("docs/reference/%s is another: %v; run `make docs`", page, err)
		}
	}
}
