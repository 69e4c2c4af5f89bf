package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const passing = "package p\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n"

// createCheckout creates a tree with one package of each kind.
func createCheckout(t *testing.T) string {
	t.Helper()
	files := map[string]string{
		"services/pure/a_test.go":               passing,
		"services/outside/a_test.go":            strings.Replace(passing, "{}", `{ _ = "../../deploy/x" }`, 1),
		"services/quick/a_integration_test.go":  "//go:build integration\n\n" + passing,
		"services/quick/a_test.go":              passing,
		"services/long/a_integration_test.go":   "//go:build integration && linux\n\n" + passing,
		"services/bare/a_integration_test.go":   "//go:build integration && !race\n\n" + strings.Replace(passing, "TestIt", "TestBare", 1),
		"services/worlds/a_test.go":             "//go:build !race\n\n" + strings.Replace(passing, "TestIt", "TestWorlds", 1),
		"services/never/mutants_test.go":        "//go:build mutants\n\n" + passing,
		"services/pure/testdata/x/a_test.go":    passing,
		"services/policy/b_test.go":             passing,
		"services/policy/c_integration_test.go": "//go:build integration && !race\n\n" + strings.Replace(passing, "TestIt", "TestBounds", 1),
		"services/policy/conformance/c_test.go": passing,
		"deploy/e2e/e2e_test.go":                "//go:build e2e\n\n" + passing,
		"deploy/e2e/later_test.go":              "//go:build e2e && nightly\n\n" + passing,
		"deploy/e2e/chaos/chaos_test.go":        "//go:build e2e\n\n" + passing,
		"deploy/local/x_integration_test.go":    "//go:build integration\n\n" + passing,
	}
	for _, m := range listModules() {
		files[m.dir+"/go.mod"] = "module example.org/" + m.dir + "\n"
	}
	return writeTree(t, files)
}

// plannedStages returns the planned stages by name.
func plannedStages(t *testing.T, root string, suites ...string) map[string]stage {
	t.Helper()
	return plannedStagesWith(t, root, options{suites: suites})
}

func plannedStagesWith(t *testing.T, root string, o options) map[string]stage {
	t.Helper()
	o.seconds = map[string]float64{"services/long": 60, "services/quick": 6}
	stages, err := planStages(root, o)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]stage{}
	for _, s := range stages {
		byName[s.name] = s
	}
	return byName
}

func TestPlanStagesSeparatesTestsByWhatTheyNeed(t *testing.T) {
	got := plannedStages(t, createCheckout(t), "unit", "integration", "e2e")
	for name, want := range map[string]stage{
		"services without servers":                    {step: stepUnit, packages: []string{"./pure", "./quick", "./worlds"}, race: true},
		"services that reads other files":             {step: stepUnit, packages: []string{"./outside"}, race: true},
		"services on real servers":                    {step: stepServers, packages: []string{"./long", "./quick", "./bare"}, servers: true, tags: "integration"},
		"services/worlds without race detector":       {step: stepUnit, packages: []string{"./worlds"}, only: "^(TestWorlds)$"},
		"services/policy that reads other files":      {step: stepUnit, packages: []string{"./."}, race: true, tags: "integration"},
		"services/policy without race detector":       {step: stepUnit, packages: []string{"./."}, tags: "integration", only: "^(TestBounds)$"},
		"services/policy/conformance without servers": {step: stepUnit, packages: []string{"./."}, tags: "integration"},
		"deploy/e2e end to end":                       {step: stepServers, packages: []string{"./."}, servers: true, tags: "e2e"},
		"chaos":                                       {step: stepChaos, packages: []string{"./chaos"}, servers: true, tags: "e2e"},
		"deploy/local that reads other files":         {step: stepUnit, packages: []string{"./."}, tags: "integration"},
	} {
		s := got[name]
		if !slices.Equal(s.packages, want.packages) || s.step != want.step || s.race != want.race || s.servers != want.servers ||
			s.tags != want.tags || s.only != want.only {
			t.Errorf("%s: got %+v, want %+v", name, s, want)
		}
		delete(got, name)
	}
	for name, s := range got {
		t.Errorf("got the stage %s: %+v", name, s)
	}
}

func TestPlanStagesOfUnitRunsEachUntaggedTest(t *testing.T) {
	got := plannedStages(t, createCheckout(t), "unit")
	if s := got["services without servers"]; !slices.Equal(s.packages, []string{"./pure", "./quick", "./worlds"}) {
		t.Errorf("got %q, want the untagged tests of ./quick too", s.packages)
	}
	for name, s := range got {
		if s.servers || s.tags != "" {
			t.Errorf("%s needs servers: %+v", name, s)
		}
	}
}

func TestPlanStagesWithRaceKeepsTestsThatExistOnlyWithout(t *testing.T) {
	got := plannedStagesWith(t, createCheckout(t), options{suites: []string{"integration"}, race: true})
	if s := got["services on real servers"]; !s.race {
		t.Errorf("got %+v, want the race detector", s)
	}
	if s := got["services/bare without race detector"]; s.only != "^(TestBare)$" || s.race || !s.servers {
		t.Errorf("got %+v, want TestBare on servers without the race detector", s)
	}
}

func TestPlanStagesOrdersUnknownPackagesByNumberOfTests(t *testing.T) {
	root := createCheckout(t)
	more := "//go:build integration\n\n" + passing + "\nfunc TestMore(t *testing.T) {}\n"
	if err := os.WriteFile(filepath.Join(root, "services/bare/b_integration_test.go"), []byte(more), 0o644); err != nil {
		t.Fatal(err)
	}
	got := plannedStages(t, root, "integration")["services on real servers"]
	if want := []string{"./long", "./bare", "./quick"}; !slices.Equal(got.packages, want) {
		t.Errorf("got %q, want %q: three tests of ./bare, whose duration is not known, take longer than 6 s", got.packages, want)
	}
}

func TestPlanStagesRefusesUnknownSuite(t *testing.T) {
	if _, err := planStages(createCheckout(t), options{suites: []string{"units"}}); err == nil || !strings.Contains(err.Error(), `"units"`) {
		t.Errorf("got %v, want an error that names the suite", err)
	}
}

func TestDigestFilesChangesWithEveryFileButGo(t *testing.T) {
	root := createCheckout(t)
	digest := func() string {
		d, err := digestFiles(root)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	write := func(name string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	last := digest()
	for _, name := range []string{"deploy/crd/a.yaml", "docs/a.md", "bin/kube-local.stamp"} {
		write(name)
		if now := digest(); now == last {
			t.Errorf("the digest does not notice %s", name)
		} else {
			last = now
		}
	}
	for _, name := range []string{"services/pure/b.go", ".tmp/x", "bin/entail", ".git/x"} {
		write(name)
		if digest() != last {
			t.Errorf("the digest depends on %s", name)
		}
	}
}
