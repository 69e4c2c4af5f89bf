package bootclock

import (
	"testing"
	"time"
)

func TestItGoesOn(t *testing.T) {
	begun, then := time.Now(), Now()
	time.Sleep(time.Millisecond)
	if passed, least := Since(then), time.Since(begun)/2; passed < least {
		t.Errorf("%s passed; want %s at least", passed, least)
	}
}
