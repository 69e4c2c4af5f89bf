// Package bootclock tells how much time has passed, that in which the machine was asleep included:
// by the clock of [time.Now] a lease may seem to run although it has long been given to somebody else.
package bootclock

import "time"

// Since is how long ago a [Now] was.
func Since(then time.Duration) time.Duration { return Now() - then }
