//go:build !linux

package bootclock

import "time"

var begun = time.Now()

// Now returns the time since this process started, as the system counts it.
func Now() time.Duration { return time.Since(begun) }
