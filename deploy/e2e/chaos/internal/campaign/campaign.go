// Package campaign lets a workload and a nemesis loose on a system, round after round, and has it
// checked after each. What it finds it keeps, with all that is needed to read and repeat it.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/checker"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/nemesis"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

// Config says what to do.
type Config struct {
	// System is run anew for each episode, below Dir.
	System system.Config
	// Seed decides about every operation and every blow. First is the episode to begin with.
	Seed  uint64
	First int
	// Blows to choose from.
	Blows []nemesis.Blow
	// For is how long to go on, and Rounds the least number of rounds, on a machine however slow. The last round ends later.
	For    time.Duration
	Rounds int
	// Settle is how long a system may take to come to rest.
	Settle time.Duration
	// Findings is after how many to end; 0 is never.
	Findings int
	// Out hears how it goes.
	Out io.Writer
}

// Finding is the end of an episode in which violations were seen.
type Finding struct {
	Episode, Round int
	// Blows are those since the system was last at rest.
	Blows      []string
	Violations []checker.Violation
	// Dir keeps logs, history, objects and state.
	Dir string
}

// String returns a line for each violation, which CI recognizes, then the place and the blows.
func (f Finding) String() string {
	var b strings.Builder
	for _, v := range f.Violations {
		fmt.Fprintln(&b, v.Report())
	}
	fmt.Fprintf(&b, "  episode %d, round %d, after %s\n  kept in %s", f.Episode, f.Round, strings.Join(f.Blows, ", "), f.Dir)
	return b.String()
}

// Report is what a campaign did and found.
type Report struct {
	Episodes, Rounds, Operations, Replays, Looks int
	// Blows is how often each sort struck.
	Blows    map[string]int
	Findings []Finding
	// Slowest is the longest time that a system took to come to rest.
	Slowest time.Duration
}

// Run runs a campaign and prints its seed before anything else. It returns an error if it could not go on; findings
// are in the report.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	report := &Report{Blows: map[string]int{}}
	_, _ = fmt.Fprintf(cfg.Out, "seed %d\n", cfg.Seed)
	until := time.Now().Add(cfg.For)
	for number := cfg.First; ; number++ {
		finding, err := runEpisode(ctx, cfg, number, until, report)
		if err != nil {
			return report, fmt.Errorf("episode %d: %w", number, err)
		}
		if finding != nil {
			report.Findings = append(report.Findings, *finding)
			_, _ = fmt.Fprintln(cfg.Out, finding)
		}
		enough := cfg.Findings > 0 && len(report.Findings) >= cfg.Findings
		if enough || cfg.isOver(until, report) || ctx.Err() != nil {
			return report, ctx.Err()
		}
	}
}

// isOver reports whether time is up and there were enough rounds.
func (c Config) isOver(until time.Time, report *Report) bool {
	return time.Now().After(until) && report.Rounds >= c.Rounds
}

// Write writes what was done and found.
func (r *Report) Write(to io.Writer) error {
	_, err := fmt.Fprintf(to, "%d episodes, %d rounds, %d operations, %d replays, %d looks of the monitor, %s at most until rest\n",
		r.Episodes, r.Rounds, r.Operations, r.Replays, r.Looks, r.Slowest.Round(100*time.Millisecond))
	accused := map[string]int{}
	for _, f := range r.Findings {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names(f.Blows)))) {
			accused[name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Blows)) {
		_, more := fmt.Fprintf(to, "  %-15s struck %4d, in %d rounds that failed\n", name, r.Blows[name], accused[name])
		err = errors.Join(err, more)
	}
	_, more := fmt.Fprintf(to, "%d findings\n", len(r.Findings))
	return errors.Join(err, more)
}

// names are the blows' first words.
func names(blows []string) []string {
	all := make([]string, len(blows))
	for i, b := range blows {
		all[i], _, _ = strings.Cut(b, " ")
	}
	return all
}
