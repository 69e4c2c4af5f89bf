package bootclock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine started; see clock_gettime(2), CLOCK_BOOTTIME.
func Now() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // Every Linux that Go supports has this clock.
	return time.Duration(now.Nano())
}
