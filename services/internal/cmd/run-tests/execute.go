package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// packageTimeout bounds the tests of one package.
const packageTimeout = 40 * time.Minute

// stopTimeout bounds the time in which go test stops its children after a signal.
const stopTimeout = 10 * time.Second

// goTestEvent is one line of go test -json.
type goTestEvent struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// packageOutcome holds the output of one package and the results of its tests.
type packageOutcome struct {
	stage   stage
	path    string
	failed  bool
	cached  bool
	seconds float64
	tests   map[string]*testResult
	// output holds the output of the package that belongs to no test, and the compiler's output.
	output strings.Builder
}

// testResult is one test with its subtests.
type testResult struct {
	failed  bool
	cases   int
	failing int
	seconds float64
	output  strings.Builder
}

// testEnvironment returns the environment of go test.
func testEnvironment(root string) []string {
	env := append(os.Environ(), "GOWORK=off", "ENTAIL_BIN="+filepath.Join(root, "bin"), "RAPID_NOFAILFILE=1")
	// Collect garbage less often: CPU is scarcer than memory.
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=400")
	}
	if os.Getenv("ENTAIL_COMMIT") == "" {
		if commit, err := exec.Command("git", "-C", root, "rev-parse", "HEAD").Output(); err == nil {
			env = append(env, "ENTAIL_COMMIT="+strings.TrimSpace(string(commit)))
		}
	}
	if flags := os.Getenv("GOFLAGS"); !strings.Contains(flags, "-trimpath") {
		env = append(env, "GOFLAGS="+strings.TrimSpace(flags+" -trimpath"))
	}
	return env
}

// canUseRaceDetector reports whether the race detector can be used. It needs cgo, which is enabled by default if there
// is a C compiler.
func canUseRaceDetector(ctx context.Context) bool {
	command := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED")
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CGO_ENABLED=") })
	out, err := command.Output()
	return err == nil && strings.TrimSpace(string(out)) == "1"
}

// goArguments returns the arguments of go for a stage.
func (s stage) goArguments() []string {
	args := []string{"test", "-json", "-vet=off", "-timeout=" + packageTimeout.String(), "-p=" + strconv.Itoa(s.parallel)}
	if s.race {
		// SQLite is C code translated to Go. Checking its accesses would take a quarter of the total time.
		args = append(args, "-race", "-gcflags=modernc.org/...=-race=false -d=checkptr=0")
	}
	if s.tags != "" {
		args = append(args, "-tags="+s.tags)
	}
	if s.servers {
		args = append(args, "-count=1")
	}
	if s.only != "" {
		args = append(args, "-run="+s.only)
	}
	if s.key != "" { // No test has this name; the flag becomes part of the cache key.
		args = append(args, "-skip=^files-"+s.key+"$")
	}
	return append(args, s.packages...)
}

// runStage runs a stage and passes each package to done when it has ended.
func (r *runner) runStage(ctx context.Context, s stage, done func(*packageOutcome)) error {
	command := exec.CommandContext(ctx, "go", s.goArguments()...)
	command.Dir = filepath.Join(r.root, s.module)
	cgo := "CGO_ENABLED=0"
	if s.race {
		cgo = "CGO_ENABLED=1"
	}
	command.Env = append(slices.Clone(r.env), cgo)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = stopTimeout
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting go test: %w", err)
	}
	c := outcomeCollector{stage: s, prefix: modulePath(command.Dir), packages: map[string]*packageOutcome{}, builds: map[string]*strings.Builder{}}
	readErr := c.readEvents(out, done)
	waitErr := command.Wait()
	if readErr != nil {
		return readErr
	}
	if waitErr != nil && !c.failed {
		return fmt.Errorf("go test of %s: %w\n%s", s.name, waitErr, stderr.String())
	}
	return nil
}

// outcomeCollector converts events to outcomes.
type outcomeCollector struct {
	stage    stage
	prefix   string
	packages map[string]*packageOutcome
	// builds holds the output of the compiler, by import path.
	builds map[string]*strings.Builder
	failed bool
}

func (c *outcomeCollector) readEvents(from io.Reader, done func(*packageOutcome)) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e goTestEvent
			if json.Unmarshal(line, &e) != nil {
				e = goTestEvent{Action: "output", Output: string(line)}
			}
			if ended := c.addEvent(e); ended != nil {
				done(ended)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading events of go test: %w", err)
		}
	}
}

// addEvent adds one event. It returns the outcome of the package when the package has ended, otherwise nil.
func (c *outcomeCollector) addEvent(e goTestEvent) *packageOutcome {
	if strings.HasPrefix(e.Action, "build-") {
		if c.builds[e.ImportPath] == nil {
			c.builds[e.ImportPath] = &strings.Builder{}
		}
		_, _ = c.builds[e.ImportPath].WriteString(e.Output) // A strings.Builder returns no error.
		return nil
	}
	o := c.packages[e.Package]
	if o == nil {
		path := "." + strings.TrimPrefix(e.Package, c.prefix)
		o = &packageOutcome{stage: c.stage, path: path, tests: map[string]*testResult{}}
		c.packages[e.Package] = o
	}
	if e.Test == "" {
		return c.handlePackageEvent(o, e)
	}
	top, _, isSub := strings.Cut(e.Test, "/")
	t := o.tests[top]
	if t == nil {
		t = &testResult{}
		o.tests[top] = t
	}
	t.output.WriteString(e.Output)
	switch e.Action {
	case "run":
		t.cases++
	case "fail":
		t.failing++
	}
	if !isSub && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
		t.failed, t.seconds = e.Action == "fail", e.Elapsed
	}
	return nil
}

func (c *outcomeCollector) handlePackageEvent(o *packageOutcome, e goTestEvent) *packageOutcome {
	o.output.WriteString(e.Output)
	switch e.Action {
	case "output":
		o.cached = o.cached || strings.HasPrefix(e.Output, "ok ") && strings.Contains(e.Output, "(cached)")
		return nil
	case "pass", "skip":
	case "fail":
		o.failed, c.failed = true, true
		for path, text := range c.builds {
			if text.Len() > 0 && (path == e.Package || strings.HasPrefix(path, e.Package+" ") || len(o.tests) == 0) {
				o.output.WriteString(text.String())
			}
		}
	default:
		return nil
	}
	o.seconds = e.Elapsed
	return o
}

// modulePath returns the module path in go.mod of a directory.
func modulePath(dir string) string {
	data, _ := os.ReadFile(filepath.Join(dir, "go.mod")) // An unreadable go.mod also makes go test fail.
	first, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(strings.TrimPrefix(first, "module"))
}

// runner runs stages and reports their results.
type runner struct {
	root string
	out  io.Writer
	env  []string
	slow slowTests
	// untimed accepts tests that take longer than slowSeconds.
	untimed bool
	record  *runRecord
	mu      sync.Mutex // guards out and record
}

// runAll runs the steps one after another.
func (r *runner) runAll(ctx context.Context, stages []stage) error {
	if !canUseRaceDetector(ctx) {
		fmt.Fprintln(r.out, "no C compiler: the race detector is off")
		for i := range stages {
			stages[i].race = false
		}
	}
	for len(stages) > 0 {
		n := slices.IndexFunc(stages, func(s stage) bool { return s.step != stages[0].step })
		if n < 0 {
			n = len(stages)
		}
		if err := r.runStep(ctx, stages[:n]); err != nil {
			return err
		}
		stages = stages[n:]
	}
	return r.writeReport()
}

// runStep runs the stages of one step. Stages without servers run one after another, because each uses all cores.
// Stages on servers run together, because they mostly wait.
func (r *runner) runStep(ctx context.Context, stages []stage) error {
	began := time.Now()
	var running sync.WaitGroup
	failures := make([]error, len(stages))
	for i, s := range stages {
		running.Go(func() { failures[i] = r.runStage(ctx, s, r.recordAndPrintOutcome) })
		if s.step == stepUnit {
			running.Wait()
		}
	}
	running.Wait()
	r.record.steps = append(r.record.steps, stepDuration{stages[0].step, time.Since(began)})
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	again := time.Now()
	n, err := r.rerunCandidates(ctx)
	if n > 0 {
		r.record.steps = append(r.record.steps, stepDuration{stages[0].step + " again", time.Since(again)})
	}
	return err
}
