package diff_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/diff"
)

func TestWorstClass(t *testing.T) {
	t.Parallel()
	classes := append(diff.AllClasses(), diff.None)
	for i, worse := range classes {
		for _, other := range classes[i:] {
			changes := []diff.PolicyChange{{Class: other}, {Class: worse}, {Class: other}}
			if got := diff.WorstClass(changes); got != worse {
				t.Errorf("of %s and %s the worst is %s", worse, other, got)
			}
		}
	}
	if got := diff.WorstClass(nil); got != diff.None {
		t.Errorf("of nothing the worst is %q", got)
	}
}

func TestRenderTextGroupsByClassWorstFirst(t *testing.T) {
	t.Parallel()
	after := edit(t, base, "idPrefix: prj", "idPrefix: project", "      - relation: friend\n        targetTypes: [tenant]\n", "", "  - name: edit\n", "")
	got := diff.RenderText(diff.Policies(parse(t, policy.Options{}, base), parse(t, policy.Options{}, after)))
	const want = `breaking for data:
  0.yaml:13:19: relation friend of project is removed: stored relationships in it would be orphaned
breaking for ids:
  0.yaml:8:11: ids of type project begin with project, no longer with prj: those that exist are not recognised
harmless:
  0.yaml:17:11: action edit is removed; the types list its bindings
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestRenderTextWithoutChanges(t *testing.T) {
	t.Parallel()
	if got := diff.RenderText(nil); got != "no change in meaning\n" {
		t.Errorf("got %q", got)
	}
	data, err := diff.RenderJSON(nil)
	if want := "{\n  \"worst\": \"\",\n  \"changes\": []\n}\n"; err != nil || string(data) != want {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestRenderJSON(t *testing.T) {
	t.Parallel()
	changes := diff.Policies(parse(t, policy.Options{}, base), parse(t, policy.Options{}, edit(t, base, "  - name: edit\n", "  - name: edit\n  - name: drop\n")))
	data, err := diff.RenderJSON(changes)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Worst   string
		Changes []map[string]any
	}
	if err := json.Unmarshal(data, &got); err != nil || got.Worst != "harmless" || len(got.Changes) != 1 {
		t.Fatalf("got %s, %v", data, err)
	}
	keys := make([]string, 0, len(got.Changes[0]))
	for key := range got.Changes[0] {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if strings.Join(keys, " ") != "class message name new what" {
		t.Errorf("got keys %v", keys)
	}
}
