package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// failedOutcome returns the outcome of a package in which the named tests failed.
func failedOutcome(output string, names ...string) *packageOutcome {
	o := &packageOutcome{stage: stage{module: "services"}, path: "./p", failed: true, tests: map[string]*testResult{"TestGood": {}}}
	for _, name := range names {
		o.tests[name] = &testResult{failed: true}
		o.tests[name].output.WriteString(output)
	}
	if len(names) == 0 {
		o.output.WriteString(output)
	}
	return o
}

func TestFindRerunnableTestAllowsOneOrdinaryFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		of   *packageOutcome
		want string
	}{
		"one test":                     {failedOutcome("x_test.go:3: got 1, want 2", "TestA"), "TestA"},
		"a word that is not a finding": {failedOutcome("x_test.go:3: no findings: got 1", "TestA"), "TestA"},
		"two tests":                    {failedOutcome("x_test.go:3: got 1, want 2", "TestA", "TestB"), ""},
		"no test":                      {failedOutcome("exit status 1"), ""},
		"data race":                    {failedOutcome("WARNING: DATA RACE\nRead at", "TestA"), ""},
		"panic":                        {failedOutcome("panic: runtime error", "TestA"), ""},
		"timeout":                      {failedOutcome("panic: test timed out after 20m", "TestA"), ""},
		"goroutine leak":               {failedOutcome("found unexpected goroutines:\n[Goroutine 7", "TestA"), ""},
		"finding of a monitor":         {failedOutcome("chaos_test.go:40: finding: allow: alice may get", "TestA"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, reason := findRerunnableTest(tc.of)
			if got != tc.want || (got == "") != (reason != "") {
				t.Errorf("got %q, %q; want %q", got, reason, tc.want)
			}
		})
	}
}

// runSmallModule runs the tests of a small module and returns the report and the error.
func runSmallModule(t *testing.T, source string, change func(*stage)) (string, error) {
	t.Helper()
	root := writeTree(t, map[string]string{
		"m/go.mod":    "module example.org/m\n\ngo 1.26\n",
		"m/p_test.go": "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Args\n\n" + source,
	})
	t.Setenv("ENTAIL_CACHE", t.TempDir())
	results, err := newRunRecord(filepath.Join(root, ".tmp"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := runner{root: root, out: &out, env: append(testEnvironment(root), "COUNTER="+filepath.Join(root, "counter")), record: results, slow: slowTests{}}
	s := stage{step: stepServers, module: "m", packages: []string{"./..."}, servers: true, parallel: 1}
	if change != nil {
		change(&s)
	}
	err = r.runAll(t.Context(), []stage{s})
	return out.String(), err
}

// failsUntil is the source of a test that fails until its run number LIMIT.
const failsUntil = `func TestUnstable(t *testing.T) {
	data, _ := os.ReadFile(os.Getenv("COUNTER"))
	if err := os.WriteFile(os.Getenv("COUNTER"), append(data, 'x'), 0o644); err != nil { t.Fatal(err) }
	if len(data) < LIMIT { t.Errorf("run %d failed", len(data)) }
}

func TestStable(t *testing.T) { t.Run("sub", func(*testing.T) {}) }
`

func TestRunAllReportsFlakyTest(t *testing.T) {
	out, err := runSmallModule(t, strings.ReplaceAll(failsUntil, "LIMIT", "2"), nil)
	if err != nil {
		t.Errorf("got %v, want success", err)
	}
	for _, want := range []string{"flaky: m TestUnstable\n", "run 0 failed", "3 passed, 0 failed\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
}

func TestRunAllFailsWhenTestFailsThreeTimes(t *testing.T) {
	out, err := runSmallModule(t, strings.ReplaceAll(failsUntil, "LIMIT", "3"), nil)
	if err == nil || strings.Contains(out, "flaky: ") || !strings.Contains(out, "2 passed, 1 failed\n") || !strings.Contains(out, "run 2 failed") {
		t.Errorf("got %v and\n%s\nwant one failure", err, out)
	}
}

func TestRunAllFailsWhenPackageDoesNotBuild(t *testing.T) {
	out, err := runSmallModule(t, "func TestBroken(t *testing.T) { undefined() }\n", nil)
	if err == nil || !strings.Contains(out, "undefined: undefined") {
		t.Errorf("got %v and\n%s\nwant the compiler's message", err, out)
	}
}

func TestRunAllFailsWhenPackageFailsOutsideOfTests(t *testing.T) {
	out, err := runSmallModule(t, "func TestGood(*testing.T) {}\n\nfunc TestMain(m *testing.M) { m.Run(); println(\"leaked\"); os.Exit(1) }\n", nil)
	if err == nil || !strings.Contains(out, "leaked") {
		t.Errorf("got %v and\n%s\nwant a failure that shows what the package printed", err, out)
	}
}

func TestUnlistedSlowTestsReturnsSlowTests(t *testing.T) {
	o := &packageOutcome{stage: stage{module: "services", servers: true}, path: "./p", tests: map[string]*testResult{
		"TestSlow": {seconds: 21}, "TestListed": {seconds: 90}, "TestQuick": {seconds: 19},
	}}
	r := runner{slow: slowTests{"services/p TestListed": "waits for an election"}}
	if got := r.unlistedSlowTests(o); len(got) != 1 || got[0] != "TestSlow" {
		t.Errorf("got %q, want TestSlow", got)
	}
}

func TestRunAllDoesNotSkipTestsWithKey(t *testing.T) {
	out, err := runSmallModule(t, "func TestIt(*testing.T) {}\n", func(s *stage) { s.servers, s.key = false, "abc" })
	if err != nil || !strings.Contains(out, "1 passed, 0 failed\n") {
		t.Errorf("got %v and\n%s\nwant one passed test", err, out)
	}
}

func TestReadSlowTestsRequiresReason(t *testing.T) {
	root := writeTree(t, map[string]string{
		"good": "# comment\n\nservices/p TestA: waits for an election of NATS\n", "bad": "services/p TestA\n",
	})
	good, err := readSlowTests(filepath.Join(root, "good"))
	if err != nil || !good.hasTest("services/p", "TestA") || good.hasTest("services/p", "TestB") {
		t.Errorf("got %v, %v; want TestA", good, err)
	}
	if _, err := readSlowTests(filepath.Join(root, "bad")); err == nil || !strings.Contains(err.Error(), "bad:1") {
		t.Errorf("got %v, want an error with the line", err)
	}
	if _, err := readSlowTests(filepath.Join(root, "none")); !os.IsNotExist(err) {
		t.Errorf("got %v, want that the file does not exist", err)
	}
}
