package leader

import (
	"slices"
	"testing"
	"time"
)

func TestStandbyRequestsTermLessOftenWhileUntaken(t *testing.T) {
	const vacant = 6 * time.Second
	seen := standbyWatch{vacant: vacant}
	var asked []time.Duration
	for now := time.Second; now < 25*time.Minute; now += time.Second {
		if seen.observeLease(7, now) {
			asked = append(asked, now)
		}
	}
	var waits []time.Duration
	for i := 1; i < len(asked); i++ {
		waits = append(waits, (asked[i]-asked[i-1])/vacant)
	}
	if want := []time.Duration{2, 4, 8, 16, 32, 32, 32}; asked[0] != time.Second+vacant || !slices.Equal(waits[:min(len(waits), len(want))], want) {
		t.Errorf("it asked after %s, and again after these times as long: %d", asked[0], waits)
	}
	begin := asked[len(asked)-1]
	if seen.observeLease(8, begin+time.Second) || !seen.observeLease(8, begin+time.Second+vacant) {
		t.Error("once it was claimed, a standby does not wait as long as at first")
	}
}
