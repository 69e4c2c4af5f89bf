package impliedrole

import "time"

// Bounds of what a [pace] waits for.
const (
	minCalm  = 100 * time.Millisecond
	maxCalm  = time.Second
	patience = 5 * time.Second
)

// pace is when statuses are written of rules that keep changing. A change that comes alone is told at
// once. Of many that come one after the other it is told what they come to: when the rules have been calm
// for about as long as it took to write the last statuses, or every few seconds. The zero value is ready to use.
type pace struct {
	// changed is when the rules last changed.
	changed time.Time
	// since is from when on several changes have not been told of; zero if there are no such.
	since time.Time
	calm  time.Duration
}

// change notes that the rules have changed.
func (p *pace) change(now time.Time) {
	switch {
	case now.Sub(p.changed) >= max(p.calm, minCalm):
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = now
	}
	p.changed = now
}

// told notes that statuses were written for so long.
func (p *pace) told(now time.Time, took time.Duration) {
	if p.calm = min(took, maxCalm); !p.since.IsZero() {
		p.since = now
	}
}

// wait is for how long statuses are still not to be written.
func (p *pace) wait(now time.Time) time.Duration {
	if p.since.IsZero() {
		return 0
	}
	return max(0, min(p.changed.Add(max(p.calm, minCalm)).Sub(now), p.since.Add(patience).Sub(now)))
}
