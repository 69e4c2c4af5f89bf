//go:build !linux

package bootclock

import "time"

var begun = time.Now()

// Now is the time since this process began, as far as the system counts it.
func Now() time.Duration { return time.Since(begun) }
