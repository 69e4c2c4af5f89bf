package campaign

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAReportSaysWhichBlowsWereInRoundsThatFailed(t *testing.T) {
	r := Report{
		Episodes: 2, Rounds: 9, Operations: 100, Looks: 1000, Slowest: 2500 * time.Millisecond,
		Blows: map[string]int{"pause": 4, "wipe": 2, "full": 1},
		Findings: []Finding{
			{Episode: 1, Round: 3, Blows: []string{"pause a for 6s", "pause b for 7s", "wipe all"}, Err: errors.New("first\nsecond"), Dir: "kept"},
			{Episode: 2, Round: 1, Blows: []string{"pause a for 8s"}, Err: errors.New("other")},
		},
	}
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"9 rounds", "2.5s at most", "full            struck    1, in 0 rounds", "pause           struck    4, in 2 rounds", "2 findings"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
	if got, want := r.Findings[0].String(), "episode 1, round 3, after pause a for 6s, pause b for 7s, wipe all:\n  first\n  second\n  kept in kept"; got != want {
		t.Errorf("a finding reads %q, want %q", got, want)
	}
}

func TestEachEpisodeDrawsItsOwn(t *testing.T) {
	cfg := Config{Seed: 1}
	seen := map[uint64]bool{}
	for number := 1; number <= 5; number++ {
		for _, stream := range []int{ofOperations, ofBlows, ofPlan} {
			n := cfg.random(number, stream).Uint64()
			if seen[n] || n != cfg.random(number, stream).Uint64() {
				t.Fatalf("episode %d, stream %d draws %d", number, stream, n)
			}
			seen[n] = true
		}
	}
}
