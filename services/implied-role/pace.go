package impliedrole

import "time"

// Bounds of the times that a [statusThrottle] waits.
const (
	minCalm  = 100 * time.Millisecond
	maxCalm  = time.Second
	patience = 5 * time.Second
)

// statusThrottle decides when to write the statuses of rules that keep changing. A single change is written at once. After
// several changes in a row, statuses are written when the rules have been calm for about as long as the last writes
// took. They are written at the latest after patience. The zero value is ready to use.
type statusThrottle struct {
	// changed is the time of the last change of the rules.
	changed time.Time
	// since is the time from which several changes wait for their statuses, or zero.
	since time.Time
	calm  time.Duration
}

// recordRuleChange records a change of the rules.
func (p *statusThrottle) recordRuleChange(now time.Time) {
	switch {
	case now.Sub(p.changed) >= max(p.calm, minCalm):
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = now
	}
	p.changed = now
}

// recordStatusWriteDuration records the time that writing statuses took.
func (p *statusThrottle) recordStatusWriteDuration(now time.Time, took time.Duration) {
	if p.calm = min(took, maxCalm); !p.since.IsZero() {
		p.since = now
	}
}

// remainingStatusDelay returns the remaining time before statuses may be written.
func (p *statusThrottle) remainingStatusDelay(now time.Time) time.Duration {
	if p.since.IsZero() {
		return 0
	}
	return max(0, min(p.changed.Add(max(p.calm, minCalm)).Sub(now), p.since.Add(patience).Sub(now)))
}
