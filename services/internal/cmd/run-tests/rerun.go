package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxReruns bounds the reruns of one failing test.
	maxReruns = 2
	// slowSeconds bounds the duration of a test on real servers that is not in the list of slow tests.
	slowSeconds = 20.0
	// slowAloneSeconds bounds the duration of the same test when it runs again alone. It then also starts the servers
	// that the tests of its package share, which takes up to 20 seconds for OpenSearch.
	slowAloneSeconds = 40.0
)

// serious matches the output of failures that do not run again. These are a finding of a monitor, a data race, a panic,
// leaked goroutines, or a timeout.
var serious = regexp.MustCompile(`\bfinding: [a-z]+: |WARNING: DATA RACE|(?m:^panic: )|(?m:^fatal error: )|found unexpected goroutines|\[signal SIG`)

// findRerunnableTest returns the failed test of a package if it is the only one and may run again. Otherwise it returns
// "" and the reason.
func findRerunnableTest(o *packageOutcome) (name, reason string) {
	var failing []string
	for name, t := range o.tests {
		if t.failed || serious.MatchString(t.output.String()) {
			failing = append(failing, name)
		}
		if line := serious.FindString(t.output.String()); line != "" {
			return "", "not run again: " + strings.TrimSpace(line)
		}
	}
	if line := serious.FindString(o.output.String()); line != "" {
		return "", "not run again: " + strings.TrimSpace(line)
	}
	switch len(failing) {
	case 0:
		return "", "not run again: the package failed outside of its tests"
	case 1:
		return failing[0], ""
	}
	slices.Sort(failing)
	return "", "not run again: several tests failed: " + strings.Join(failing, ", ")
}

// unlistedSlowTests returns the tests on real servers that exceeded slowSeconds and are not in the list of slow tests.
func (r *runner) unlistedSlowTests(o *packageOutcome) (names []string) {
	if !o.stage.servers || r.untimed {
		return nil
	}
	for name, t := range o.tests {
		if t.seconds > slowSeconds && !t.failed && !r.slow.hasTest(o.packagePath(), name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// rerunCandidates runs each candidate alone, records the results, and returns the number of candidates.
func (r *runner) rerunCandidates(ctx context.Context) (n int, err error) {
	candidates := r.record.candidates
	r.record.candidates = nil
	for _, c := range candidates {
		last, good, err := r.rerunCandidate(ctx, c)
		if err != nil {
			return len(candidates), err
		}
		switch {
		case good && c.slow:
			fmt.Fprintf(r.out, "slow beside others, quick alone: %s %s\n", c.of.packagePath(), c.test)
		case good:
			r.record.flaky = append(r.record.flaky, c)
		case c.slow && !last.failed:
			r.record.recordFailure(c, fmt.Sprintf("took %.0f s alone, more than %.0f: make it faster, or add it with a reason to scripts/slow-tests.txt",
				last.tests[c.test].seconds, slowAloneSeconds))
		default:
			r.record.recordFailure(c, fmt.Sprintf("failed again when run alone\n%s", last.testOutput(c.test)))
		}
	}
	return len(candidates), nil
}

// rerunCandidate is a test that runs again alone.
type rerunCandidate struct {
	of   *packageOutcome
	test string
	// slow means that the test passed but took too long.
	slow bool
}

// maxReruns returns the maximum number of reruns.
func (c rerunCandidate) maxReruns() int {
	if c.slow {
		return 1
	}
	return maxReruns
}

// rerunCandidate runs a candidate again until it passes. A slow candidate must also be fast enough. It returns the
// last outcome and whether the candidate passed.
func (r *runner) rerunCandidate(ctx context.Context, c rerunCandidate) (last *packageOutcome, good bool, err error) {
	s := c.of.stage
	s.packages, s.only, s.servers, s.key = []string{c.of.path}, "^"+regexp.QuoteMeta(c.test)+"$", true, ""
	for range c.maxReruns() {
		last = nil
		if err := r.runStage(ctx, s, func(o *packageOutcome) { last = o }); err != nil {
			return nil, false, err
		}
		if last == nil || last.tests[c.test] == nil {
			return nil, false, fmt.Errorf("running %s %s again: the test did not run", c.of.packagePath(), c.test)
		}
		if !last.failed && (!c.slow || last.tests[c.test].seconds <= slowAloneSeconds) {
			return last, true, nil
		}
		if serious.MatchString(last.testOutput(c.test)) {
			break
		}
	}
	return last, false, nil
}
