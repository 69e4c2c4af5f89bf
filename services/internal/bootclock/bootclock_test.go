package bootclock

import (
	"testing"
	"time"
)

func TestNowAdvances(t *testing.T) {
	then, passed := Now(), time.After(2*time.Millisecond)
	if <-passed; Since(then) < time.Millisecond {
		t.Errorf("%s passed", Since(then))
	}
}
