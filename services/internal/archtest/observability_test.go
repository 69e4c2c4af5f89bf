package archtest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// definedMetrics returns the names of the metrics that the code registers, and of the series that Prometheus derives
// from histograms.
func definedMetrics(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range regexp.MustCompile(`"(entail_[a-z_]+)"`).FindAllSubmatch(text, -1) {
			for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
				names[string(found[1])+suffix] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAlertsAndDashboardUseExistingMetrics(t *testing.T) {
	names := definedMetrics(t)
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		asked := regexp.MustCompile(`entail_[a-z_]+`).FindAllString(text(t, "deploy/observability/"+file), -1)
		if len(asked) < 15 {
			t.Errorf("%s asks for %q", file, asked)
		}
		for _, name := range asked {
			if !names[name] {
				t.Errorf("%s asks for %s, which nobody makes", file, name)
			}
		}
	}
}

func TestEveryAlertHasTestAndRunbook(t *testing.T) {
	alerts, tests, runbooks := text(t, "deploy/observability/alerts.yaml"), text(t, "deploy/observability/alerts_test.yaml"), text(t, "docs/operate/runbooks.md")
	names := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(alerts, -1) {
		name := found[1]
		names["## "+name] = true
		for what, there := range map[string]bool{
			"runbook": strings.Contains(runbooks, "\n## "+name+"\n"), "link to it": strings.Contains(alerts, "docs/operate/runbooks.md#"+strings.ToLower(name)+"\n"),
			"test": strings.Contains(tests, "- name: "+name+"\n"), "place where all is well": strings.Contains(tests, "{alertname: "+name+", eval_time: 45m, exp_alerts: []}"),
		} {
			if !there {
				t.Errorf("%s has no %s", name, what)
			}
		}
	}
	sections := regexp.MustCompile(`(?m)^## \w+$`).FindAllString(runbooks, -1)
	if want := slices.Sorted(maps.Keys(names)); !slices.Equal(slices.Sorted(slices.Values(sections)), want) || len(want) < 15 {
		t.Errorf("runbooks are %q, alerts %q", sections, want)
	}
}
