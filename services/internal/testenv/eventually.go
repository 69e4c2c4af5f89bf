package testenv

import (
	"testing"
	"time"
)

const poll = 5 * time.Millisecond

// Eventually calls check until it returns nil. After the deadline it fails the test with the last error of check.
func Eventually(t testing.TB, deadline time.Duration, check func() error) {
	t.Helper()
	end := time.Now().Add(deadline)
	for {
		err := check()
		if err == nil {
			return
		}
		if t.Context().Err() != nil || time.Now().After(end) {
			t.Fatalf("not within %s: %v", deadline, err)
		}
		<-time.After(poll)
	}
}
