// Package bootclock measures time including the sleep of the machine. The monotonic clock of [time.Now] stops during
// sleep, so a lease could seem valid after another replica has taken it over.
package bootclock

import "time"

// Since returns the time since a value of [Now].
func Since(then time.Duration) time.Duration { return Now() - then }
