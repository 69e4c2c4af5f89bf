package bootclock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time since the machine was started; see clock_gettime(2), CLOCK_BOOTTIME.
func Now() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err) // Every Linux that Go runs on has it.
	}
	return time.Duration(now.Nano())
}
