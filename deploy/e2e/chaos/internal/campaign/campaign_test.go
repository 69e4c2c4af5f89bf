package campaign

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/checker"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/history"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

func TestReportListsFaultsOfFailedRounds(t *testing.T) {
	r := Report{
		Episodes: 2, Rounds: 9, Operations: 100, Looks: 1000, Slowest: 2500 * time.Millisecond,
		Answers: checker.AnswerCounts{Answers: 5000, Allows: 600, Mixed: 7, Planted: 20, Found: 19},
		Blows:   map[string]int{"pause": 4, "wipe": 2, "full": 1},
		Findings: []Finding{
			{Episode: 1, Round: 3, Blows: []string{"pause a for 6s", "pause b for 7s", "wipe all"}},
			{Episode: 2, Round: 1, Blows: []string{"pause a for 8s"}},
		},
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"9 rounds", "2.5s at most", "5000 answers of webhooks and OpenFGA; 600 allows judged, 7 from mixed states; 20 wrong allows of 50 ms planted, 19 found",
		"full            struck    1, in 0 rounds", "pause           struck    4, in 2 rounds", "2 findings",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
}

func TestFindingHasOneLinePerViolationThatCIRecognizes(t *testing.T) {
	finding := Finding{
		Episode: 1, Round: 3, Blows: []string{"pause a for 6s", "wipe all"}, Dir: "kept",
		Violations: []checker.Violation{
			{Kind: checker.Allow, Err: errors.New("first\nsecond")}, {Kind: checker.Loss, Err: errors.New("other")},
		},
	}
	want := "finding: allow: first\n  second\nfinding: loss: other\n  episode 1, round 3, after pause a for 6s, wipe all\n  kept in kept"
	if got := finding.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRunPrintsSeedBeforeAnythingElse(t *testing.T) {
	var out strings.Builder
	cfg := Config{Seed: 4107, First: 1, Out: &out, System: system.Config{Checkout: t.TempDir(), Dir: t.TempDir(), Nodes: 1, Replicas: 1}}
	if _, err := Run(t.Context(), cfg); err == nil {
		t.Fatal("got no error, want one about the missing configuration of NATS")
	}
	if !strings.HasPrefix(out.String(), "seed 4107\n") {
		t.Errorf("got %q, want the seed in the first line", out.String())
	}
}

func TestCampaignEndsAfterTimeAndRounds(t *testing.T) {
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	cfg := Config{Rounds: 4}
	for name, test := range map[string]struct {
		until  time.Time
		rounds int
		want   bool
	}{
		"time is left":                       {future, 9, false},
		"time is up and rounds are missing":  {past, 3, false},
		"time is up and rounds are complete": {past, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cfg.isOver(test.until, &Report{Rounds: test.rounds}); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestEpisodeKeepsOneViolationPerErrorButDropsEndOfRound(t *testing.T) {
	var out strings.Builder
	e := &episode{history: history.New(&out), system: &system.System{}}
	e.recordViolation(checker.Violation{Kind: checker.Leak, Err: errors.New("a tuple")})
	e.recordViolation(fmt.Errorf("after a replay: %w", errSeen))
	e.recordViolation(errors.New("no answer"))
	got := e.violations()
	if len(got) != 2 || got[0].Kind != checker.Leak || got[1].Kind != checker.Stuck {
		t.Errorf("got %v, want a leak and an error without a kind", got)
	}
	if !strings.Contains(out.String(), "leak: a tuple") {
		t.Errorf("got the history %q, want the leak in it", out.String())
	}
	for range 2 * maxSeen {
		e.recordViolation(errors.New("again"))
	}
	if n := len(e.violations()); n != maxSeen {
		t.Errorf("got %d violations, want %d", n, maxSeen)
	}
}

func TestEpisodesHaveOwnSeeds(t *testing.T) {
	cfg := Config{Seed: 1}
	seen := map[uint64]bool{}
	for number := 1; number <= 5; number++ {
		for _, stream := range []int{ofOperations, ofBlows, ofPlan} {
			n := cfg.newRandom(number, stream).Uint64()
			if seen[n] || n != cfg.newRandom(number, stream).Uint64() {
				t.Fatalf("episode %d, stream %d draws %d", number, stream, n)
			}
			seen[n] = true
		}
	}
}
