package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// slowest bounds the list of the slowest tests in the report.
const slowest = 20

// stepDuration is a part of the run with its duration.
type stepDuration struct {
	name     string
	duration time.Duration
}

// testDuration is the duration of one test.
type testDuration struct {
	name    string
	seconds float64
}

// runRecord collects the results of a run.
type runRecord struct {
	dir            string
	steps          []stepDuration
	passed, failed int
	timings        []testDuration
	candidates     []rerunCandidate
	flaky          []rerunCandidate
	failures       []string
	// seconds holds the duration of each package in its last run that was not cached.
	seconds map[string]float64
}

func newRunRecord(dir string) (*runRecord, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &runRecord{dir: dir, seconds: map[string]float64{}}
	// An aborted run must not leave the results of an earlier run.
	for _, path := range []string{"counts", "minutes"} {
		if err := os.Remove(filepath.Join(dir, path)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	if path := durationsFile(); path != "" {
		data, _ := os.ReadFile(path) // Without durations, packages are ordered by name.
		_ = json.Unmarshal(data, &r.seconds)
	}
	return r, nil
}

// durationsFile returns the file for durations, which outlives the checkout. It returns "" if the system has no cache
// directory.
func durationsFile() string {
	dir := os.Getenv("ENTAIL_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(base, "entail")
	}
	return filepath.Join(dir, "package-seconds.json")
}

// packagePath returns the package as a path from the root of the checkout.
func (o *packageOutcome) packagePath() string {
	return o.stage.module + strings.TrimPrefix(o.path, ".")
}

// testOutput returns the output of a test, followed by the output of its package that belongs to no test.
func (o *packageOutcome) testOutput(name string) string {
	text := ""
	if t := o.tests[name]; t != nil {
		text = t.output.String()
	}
	return text + o.output.String()
}

// recordAndPrintOutcome records one package and prints a line about it.
func (r *runner) recordAndPrintOutcome(o *packageOutcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cases := 0
	for name, t := range o.tests {
		cases += t.cases - t.failing
		r.record.timings = append(r.record.timings, testDuration{o.packagePath() + " " + name, t.seconds})
	}
	r.record.passed += cases
	if !o.cached && o.stage.only == "" {
		r.record.seconds[o.packagePath()] = o.seconds
	}
	for _, name := range r.unlistedSlowTests(o) {
		r.record.candidates = append(r.record.candidates, rerunCandidate{o, name, true})
	}
	if !o.failed {
		if cases > 0 {
			fmt.Fprintf(r.out, "ok    %6.1f s %5d tests  %s%s\n", o.seconds, cases, o.packagePath(), map[bool]string{true: " (cached)"}[o.cached])
		}
		return
	}
	name, reason := findRerunnableTest(o)
	if name != "" {
		fmt.Fprintf(r.out, "FAIL  %6.1f s %s: %s (runs again alone)\n", o.seconds, o.packagePath(), name)
		r.record.candidates = append(r.record.candidates, rerunCandidate{o, name, false})
		return
	}
	fmt.Fprintf(r.out, "FAIL  %6.1f s %s: %s\n", o.seconds, o.packagePath(), reason)
	r.record.failed++
	for _, name := range slices.Sorted(maps.Keys(o.tests)) {
		if t := o.tests[name]; t.failed || serious.MatchString(t.output.String()) {
			fmt.Fprint(r.out, t.output.String())
		}
	}
	fmt.Fprint(r.out, o.output.String())
}

// recordFailure records a test that also failed when it ran again.
func (r *runRecord) recordFailure(c rerunCandidate, text string) {
	r.failed++
	r.failures = append(r.failures, fmt.Sprintf("FAIL  %s %s: %s", c.of.packagePath(), c.test, text))
}

// writeReport prints the summary and writes the files that the CI script reads.
func (r *runner) writeReport() error {
	rec := r.record
	for _, f := range rec.failures {
		fmt.Fprintln(r.out, f)
	}
	slices.SortFunc(rec.timings, func(a, b testDuration) int { return cmp.Compare(b.seconds, a.seconds) })
	var timings strings.Builder
	for _, t := range rec.timings {
		fmt.Fprintf(&timings, "%6.1f s %s\n", t.seconds, t.name)
	}
	lines := strings.SplitAfter(timings.String(), "\n")
	fmt.Fprintln(r.out, "slowest tests:")
	fmt.Fprint(r.out, strings.Join(lines[:min(slowest, len(lines))], ""))
	var minutes strings.Builder
	for _, s := range rec.steps {
		fmt.Fprintf(&minutes, "%.0f tests: %s\n", s.duration.Seconds(), s.name)
	}
	var flaky strings.Builder
	rec.writeFlaky(&flaky)
	fmt.Fprint(r.out, flaky.String())
	counts := fmt.Sprintf("%d passed, %d failed\n", rec.passed+len(rec.flaky), rec.failed)
	fmt.Fprint(r.out, counts)
	if err := errors.Join(
		os.WriteFile(filepath.Join(rec.dir, "minutes"), []byte(minutes.String()), 0o644),
		os.WriteFile(filepath.Join(rec.dir, "flaky"), []byte(flaky.String()), 0o644),
		os.WriteFile(filepath.Join(rec.dir, "counts"), []byte(counts), 0o644),
		os.WriteFile(filepath.Join(rec.dir, "timings"), []byte(timings.String()), 0o644),
		rec.saveDurations(),
	); err != nil {
		return err
	}
	if rec.failed > 0 {
		return errors.New("tests failed")
	}
	return nil
}

// writeFlaky prints each flaky test with the output of its failure.
func (r *runRecord) writeFlaky(to io.Writer) {
	for _, c := range r.flaky {
		fmt.Fprintf(to, "flaky: %s %s\n%s", c.of.packagePath(), c.test, c.of.testOutput(c.test))
	}
}

func (r *runRecord) saveDurations() error {
	path := durationsFile()
	if path == "" {
		return nil
	}
	data, err := json.Marshal(r.seconds)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	scratch := path + ".new"
	if err := os.WriteFile(scratch, data, 0o644); err != nil {
		return err
	}
	return os.Rename(scratch, path)
}
