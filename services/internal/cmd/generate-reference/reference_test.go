package main

import (
	"os"
	"path/filepath"
	"regexp"
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
		"metrics.md": {metricsPage, []string{"| `entail_dead_letters` | Dead letters: messages that services gave up on | watcher |", "`entail_implied_rules`", "`authz_cache_hits_total`", "`entail_messages_pending`"}},
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

// TestDescriptionsOpenWithTheirField ignores the fields of a Secret reference, which Kubernetes describes.
func TestDescriptionsOpenWithTheirField(t *testing.T) {
	text, err := kindsPage(checkout)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| \\*?`([^`]+)`\\*? \\| .*? \\| (.*) \\|$").FindAllStringSubmatch(text, -1)
	if len(rows) < 300 {
		t.Fatalf("fields: got %d, want 300", len(rows))
	}
	for _, row := range rows {
		path, description := row[1], strings.ToLower(row[2])
		name := strings.ToLower(strings.TrimRight(path[strings.LastIndex(path, ".")+1:], "[]{}"))
		if !strings.HasPrefix(description, name+" ") && !strings.Contains(path, ".passwordFrom.") {
			t.Errorf("%s: got %q, want it to open with the field", path, row[2])
		}
	}
}
