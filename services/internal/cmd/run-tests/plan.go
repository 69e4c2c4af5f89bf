package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/build/constraint"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// stage is one call of go test. See [runner.runStep] for the order within a step.
type stage struct {
	step string
	// name identifies the stage in the report.
	name string
	// module is the directory of the module, relative to the root of the checkout.
	module   string
	packages []string
	tags     string
	// race turns the race detector on.
	race bool
	// servers means that the tests use real servers. Their results are not cached, and slow tests are reported.
	servers bool
	// key is part of the cache key of the results.
	key string
	// only is a regular expression for the names of the tests. If it is empty, all tests run.
	only     string
	parallel int
}

// Steps run one after another.
const (
	stepUnit    = "unit"
	stepServers = "servers"
	stepChaos   = "chaos"
)

// The suites. The last two are also the build tags of their tests.
const (
	unit        = "unit"
	integration = "integration"
	endToEnd    = "e2e"
)

// module is one Go module with tests.
type module struct {
	dir string
	// race means that the tests without servers run with the race detector. In the other modules such tests compile
	// servers of other projects, and this would take many minutes with the race detector.
	race bool
	// cached means that results with the tag integration are also cached. These tests have fixed seeds and use no
	// server, or only a server built from the module itself.
	cached bool
}

func listModules() []module {
	return []module{
		{dir: "deploy", race: true},
		{dir: "services/policy", race: true, cached: true},
		{dir: "services", race: true},
		{dir: "deploy/e2e", race: true},
		{dir: "services/policy/conformance", cached: true},
		{dir: "deploy/local", cached: true},
	}
}

// testDirectory is a directory with tests.
type testDirectory struct {
	// path is relative to the module and starts with "./".
	path string
	// untagged means that some tests need no build tag. integration and e2e mean that the build tag adds tests.
	untagged, integration, e2e bool
	// tests counts the tests that the tag integration adds.
	tests int
	// outside means that a test reads files outside of its package, possibly outside of its module.
	outside bool
	// withoutRace lists the tests that exist only without the race detector. withoutRaceServers lists those of them
	// that use real servers.
	withoutRace, withoutRaceServers []string
}

var (
	upwards  = regexp.MustCompile(`"(\.\./)+|Checkout\(\)`)
	testName = regexp.MustCompile(`(?m)^func (Test\w*)\(t `)
)

// options configures planStages.
type options struct {
	suites []string
	// race also turns the race detector on for tests on servers. They then take twice as long.
	race bool
	// seconds holds the duration of each package in an earlier run.
	seconds map[string]float64
}

// planStages returns the stages for the suites, in the order of the steps.
func planStages(root string, o options) ([]stage, error) {
	wanted := map[string]bool{}
	for _, s := range o.suites {
		if !slices.Contains([]string{unit, integration, endToEnd}, s) {
			return nil, fmt.Errorf("unknown suite %q: use unit, integration or e2e", s)
		}
		wanted[s] = true
	}
	key, err := digestFiles(root)
	if err != nil {
		return nil, err
	}
	var stages []stage
	for _, m := range listModules() {
		folders, err := findTestDirectories(filepath.Join(root, m.dir))
		if err != nil {
			return nil, err
		}
		p := planner{module: m, wanted: wanted, key: key, options: o}
		stages = append(stages, p.planStages(folders)...)
	}
	order := []string{stepUnit, stepServers, stepChaos}
	slices.SortStableFunc(stages, func(a, b stage) int {
		return cmp.Compare(slices.Index(order, a.step), slices.Index(order, b.step))
	})
	if len(stages) == 0 {
		return nil, errors.New("no tests found")
	}
	return stages, nil
}

// secondsPerTest is the estimated duration of a test on servers, for a package whose duration is not known.
const secondsPerTest = 5

// planner plans the stages of one module.
type planner struct {
	module  module
	wanted  map[string]bool
	key     string
	options options
}

func (p planner) planStages(folders []testDirectory) (stages []stage) {
	var plain, outside, servers, e2e, chaos []string
	expected := map[string]float64{} // expected seconds by path
	for _, f := range folders {
		if f.integration && p.wanted[integration] && !p.module.cached {
			servers = append(servers, f.path)
			expected[f.path] = cmp.Or(p.options.seconds[p.durationKey(f.path)], float64(f.tests)*secondsPerTest)
		}
		switch {
		case f.e2e && p.wanted[endToEnd] && strings.HasPrefix(f.path, "./chaos"):
			chaos = append(chaos, f.path)
		case f.e2e && p.wanted[endToEnd]:
			e2e = append(e2e, f.path)
		case f.integration && p.wanted[integration] && p.module.cached:
			outside = append(outside, f.path)
		case f.untagged && p.wanted[unit] && f.outside:
			outside = append(outside, f.path)
		case f.untagged && p.wanted[unit]:
			plain = append(plain, f.path)
		}
		stages = append(stages, p.planStagesWithoutRace(f)...)
	}
	slices.SortStableFunc(servers, func(a, b string) int { return cmp.Compare(expected[b], expected[a]) })
	tags := ""
	if p.module.cached && p.wanted[integration] {
		tags = integration
	}
	base := stage{module: p.module.dir, race: p.module.race, parallel: 3}
	add := func(packages []string, change func(*stage)) {
		if len(packages) == 0 {
			return
		}
		s := base
		s.packages = packages
		change(&s)
		stages = append(stages, s)
	}
	add(plain, func(s *stage) { s.step, s.name, s.tags = stepUnit, p.module.dir+" without servers", tags })
	add(outside, func(s *stage) {
		s.step, s.name, s.tags, s.key = stepUnit, p.module.dir+" that reads other files", tags, p.key
	})
	add(servers, func(s *stage) {
		s.step, s.name, s.tags, s.servers, s.parallel = stepServers, p.module.dir+" on real servers", integration, true, 4
		s.race = p.module.race && p.options.race
	})
	add(e2e, func(s *stage) {
		s.step, s.name, s.tags, s.servers, s.race = stepServers, p.module.dir+" end to end", endToEnd, true, false
	})
	add(chaos, func(s *stage) {
		s.step, s.name, s.tags, s.servers, s.race = stepChaos, "chaos", endToEnd, true, p.options.race
	})
	return stages
}

// durationKey returns the name of a package in the record of durations.
func (p planner) durationKey(path string) string {
	return strings.TrimSuffix(p.module.dir+strings.TrimPrefix(path, "."), "/.")
}

// planStagesWithoutRace returns the stages for tests that exist only without the race detector.
func (p planner) planStagesWithoutRace(f testDirectory) (stages []stage) {
	if !p.module.race { // All tests of the module run without the race detector.
		return nil
	}
	add := func(tests []string, s stage) {
		if len(tests) == 0 {
			return
		}
		s.module, s.packages, s.parallel = p.module.dir, []string{f.path}, 2
		s.name, s.only = p.durationKey(f.path)+" without race detector", "^("+strings.Join(tests, "|")+")$"
		stages = append(stages, s)
	}
	if p.wanted[unit] {
		add(f.withoutRace, stage{step: stepUnit, key: p.key})
	}
	switch {
	case p.wanted[integration] && p.module.cached:
		add(f.withoutRaceServers, stage{step: stepUnit, tags: integration, key: p.key})
	case p.wanted[integration] && p.options.race:
		add(f.withoutRaceServers, stage{step: stepServers, tags: integration, servers: true})
	}
	return stages
}

// findTestDirectories returns the directories of a module that hold tests. It skips nested modules.
func findTestDirectories(module string) (folders []testDirectory, err error) {
	byPath := map[string]*testDirectory{}
	err = filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != module && isModule(path) || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		relative, err := filepath.Rel(module, filepath.Dir(path))
		if err != nil {
			return err
		}
		f := byPath[relative]
		if f == nil {
			f = &testDirectory{path: "./" + filepath.ToSlash(relative)}
			byPath[relative] = f
		}
		text, err := os.ReadFile(path) //nolint:gosec // Nobody else changes the checkout while its tests run.
		if err != nil {
			return err
		}
		return f.addTestFile(text)
	})
	for _, f := range byPath {
		folders = append(folders, *f)
	}
	slices.SortFunc(folders, func(a, b testDirectory) int { return cmp.Compare(a.path, b.path) })
	return folders, err
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// addTestFile records one test file.
func (f *testDirectory) addTestFile(text []byte) error {
	f.outside = f.outside || upwards.Match(text)
	built, err := parseBuildConstraint(text)
	if err != nil {
		return err
	}
	var names []string
	for _, match := range testName.FindAllSubmatch(text, -1) {
		if name := string(match[1]); name != "TestMain" {
			names = append(names, name)
		}
	}
	switch {
	case built():
		f.untagged = true
		if !built("race") {
			f.withoutRace = append(f.withoutRace, names...)
		}
	case built(integration):
		f.integration = true
		f.tests += len(names)
		if !built(integration, "race") {
			f.withoutRaceServers = append(f.withoutRaceServers, names...)
		}
	case built(endToEnd):
		f.e2e = true
	}
	return nil
}

// parseBuildConstraint returns a function that reports whether a file is built with the given tags.
func parseBuildConstraint(text []byte) (func(tags ...string) bool, error) {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("package ")) {
			break
		}
		if !constraint.IsGoBuild(string(line)) {
			continue
		}
		expr, err := constraint.Parse(string(line))
		if err != nil {
			return nil, err
		}
		return func(tags ...string) bool {
			return expr.Eval(func(tag string) bool { return tag == "unix" || tag == "linux" || slices.Contains(tags, tag) })
		}, nil
	}
	return func(...string) bool { return true }, nil
}
