// Package bootclock measures time that includes the sleep of the machine. With the clock of [time.Now] a lease may seem
// valid although another replica has it by now.
package bootclock

import "time"

// Since returns the time since a [Now].
func Since(then time.Duration) time.Duration { return Now() - then }
