package testenv

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failureRecorder records why a test failed.
type failureRecorder struct {
	testing.TB
	text string
}

func (*failureRecorder) Helper() {}

func (v *failureRecorder) Fatalf(format string, args ...any) {
	v.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestEventuallyReturnsAtFirstSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, calls := time.Now(), 0
		Eventually(t, time.Minute, func() error {
			if calls++; calls < 4 {
				return errors.New("not yet")
			}
			return nil
		})
		if took := time.Since(start); calls != 4 || took != 3*poll {
			t.Errorf("%d calls in %s; want 4 in %s", calls, took, 3*poll)
		}
	})
}

func TestEventuallyFailsWithLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watched, calls := &failureRecorder{TB: t}, 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			Eventually(watched, time.Second, func() error {
				calls++
				return fmt.Errorf("attempt %d", calls)
			})
		}()
		<-done
		if want := fmt.Sprintf("attempt %d", calls); calls < 2 || !strings.HasSuffix(watched.text, want) {
			t.Errorf("it says %q; want %q at its end", watched.text, want)
		}
	})
}
