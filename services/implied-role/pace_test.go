package impliedrole

import (
	"testing"
	"time"
)

// TestStatusThrottleCombinesChanges checks the remaining wait after each step.
func TestStatusThrottleCombinesChanges(t *testing.T) {
	type step struct {
		at time.Duration
		// change means a change of the rules. Otherwise took is the time that statuses took, if they were written.
		change bool
		took   time.Duration
		wait   time.Duration
	}
	const ms = time.Millisecond
	const between, goingOn = 90 * ms, 5040 * ms
	goesOn := []step{{0, true, 0, 0}}
	for at := between; at <= goingOn; at += between {
		goesOn = append(goesOn, step{at, true, 0, min(minCalm, between+patience-at)})
	}
	for name, steps := range map[string][]step{
		"one change is told at once": {{0, true, 0, 0}, {20 * ms, false, 20 * ms, 0}},
		"so is one now and then":     {{0, true, 0, 0}, {200 * ms, true, 0, 0}, {400 * ms, true, 0, 0}},
		"of several what they come to is told": {
			{0, true, 0, 0}, {10 * ms, true, 0, minCalm}, {60 * ms, true, 0, minCalm}, {100 * ms, false, 0, 60 * ms}, {160 * ms, false, 0, 0},
		},
		"while it goes on it is told every few seconds": append(goesOn,
			step{goingOn + 50*ms, false, 0, 0}, step{goingOn + 80*ms, false, 30 * ms, 20 * ms}, step{goingOn + 90*ms, true, 0, minCalm},
		),
		"after as long as it takes to tell": {
			{0, true, 0, 0},
			{50 * ms, true, 0, minCalm},
			{450 * ms, false, 300 * ms, 0},
			{500 * ms, true, 0, 0},
			{600 * ms, true, 0, 300 * ms},
			{900 * ms, false, 0, 0},
		},
		"but not longer than a while": {
			{0, true, 0, 0},
			{50 * ms, true, 0, minCalm},
			{time.Minute, false, time.Minute, 0},
			{time.Minute + ms, true, 0, 0},
			{time.Minute + 2*ms, true, 0, maxCalm},
		},
	} {
		start, p := time.Unix(0, 0), statusThrottle{}
		for i, s := range steps {
			now := start.Add(s.at)
			if s.change {
				p.recordRuleChange(now)
			} else if s.took > 0 {
				p.recordStatusWriteDuration(now, s.took)
			}
			if got := p.remainingStatusDelay(now); got != s.wait {
				t.Errorf("%s: after step %d they wait for %s, want %s", name, i, got, s.wait)
			}
		}
	}
}
