// Package campaign runs a workload and a nemesis on a system in rounds, and checks the system after each round. It
// keeps every finding, with the seed, history and logs that are needed to read and repeat it.
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

// Config configures a campaign.
type Config struct {
	// System is started for each episode, in a directory below Dir.
	System system.Config
	// Seed determines every operation and every blow. First is the number of the first episode.
	Seed  uint64
	First int
	// Blows holds the blows to draw from. The first rounds of each episode begin with those of Opening, one each.
	Blows, Opening []nemesis.Fault
	// For is the duration, and Rounds the minimum number of rounds, which a slow machine reaches later. The last round
	// may end after For.
	For    time.Duration
	Rounds int
	// Settle bounds the time in which a system must come to rest.
	Settle time.Duration
	// Findings is the number of findings that ends the campaign; 0 means no limit.
	Findings int
	// Out receives the progress.
	Out io.Writer
}

// Finding is an episode that ended with violations.
type Finding struct {
	Episode, Round int
	// Blows lists the blows since the system was last at rest.
	Blows      []string
	Violations []checker.Violation
	// Dir keeps logs, history, objects and state.
	Dir string
}

// String returns a line for each violation, which CI recognizes, then the place and the blows.
func (f Finding) String() string {
	var b strings.Builder
	for _, v := range f.Violations {
		fmt.Fprintln(&b, v.ReportText())
	}
	fmt.Fprintf(&b, "  episode %d, round %d, after %s\n  kept in %s", f.Episode, f.Round, strings.Join(f.Blows, ", "), f.Dir)
	return b.String()
}

// Report counts the work of a campaign and lists its findings.
type Report struct {
	Episodes, Rounds, Operations, Replays, Looks int
	// Answers counts the recorded and judged answers of webhooks and OpenFGA.
	Answers checker.AnswerCounts
	// Blows counts the strikes by the name of the blow.
	Blows    map[string]int
	Findings []Finding
	// Slowest is the longest time that a system took to come to rest.
	Slowest time.Duration
}

// Run runs a campaign and prints its seed first. It returns an error if it could not continue; findings are in the
// report.
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

// WriteText writes the report as text.
func (r *Report) WriteText(to io.Writer) error {
	_, err := fmt.Fprintf(to, "%d episodes, %d rounds, %d operations, %d replays, %d looks of the monitor, %s at most until rest\n",
		r.Episodes, r.Rounds, r.Operations, r.Replays, r.Looks, r.Slowest.Round(100*time.Millisecond))
	a := r.Answers
	_, more := fmt.Fprintf(to, "%d answers of webhooks and OpenFGA; %d allows judged, %d from mixed states; %d wrong allows of 50 ms planted, %d found\n",
		a.Answers, a.Allows, a.Mixed, a.Planted, a.Found)
	err = errors.Join(err, more)
	accused := map[string]int{}
	for _, f := range r.Findings {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(faultNames(f.Blows)))) {
			accused[name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Blows)) {
		_, more := fmt.Fprintf(to, "  %-15s struck %4d, in %d rounds that failed\n", name, r.Blows[name], accused[name])
		err = errors.Join(err, more)
	}
	_, more = fmt.Fprintf(to, "%d findings\n", len(r.Findings))
	return errors.Join(err, more)
}

// faultNames returns the first word of each blow.
func faultNames(blows []string) []string {
	all := make([]string, len(blows))
	for i, b := range blows {
		all[i], _, _ = strings.Cut(b, " ")
	}
	return all
}
