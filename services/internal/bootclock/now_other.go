//go:build !linux

package bootclock

import "time"

var begun = time.Now()

// Now returns the time since this process started, by the clock of [time.Now].
func Now() time.Duration { return time.Since(begun) }
