package opensearchsync

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

func TestAuthCacheIsFlushedAfterChangesAndOncePerTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails error
		times, began := []time.Duration(nil), time.Now()
		l := newAuthCacheFlusher(func(context.Context) error {
			times = append(times, time.Since(began))
			return fails
		}, slog.New(slog.DiscardHandler))
		forgets := func(what string, term uint64, changed bool, want ...time.Duration) {
			t.Helper()
			times, began = nil, time.Now()
			l.scheduleFlush(term, changed)
			if busy := l.isFlushPending(); busy != (len(want) > 0) {
				t.Errorf("%s: busy is %t", what, busy)
			}
			<-time.After(time.Minute)
			synctest.Wait()
			if len(times) != len(want) || len(want) == 2 && (times[0] != want[0] || times[1] != want[1]) || l.isFlushPending() {
				t.Errorf("%s: they are forgotten after %v, want %v", what, times, want)
			}
		}
		soon, later := time.Second, 10*time.Second
		forgets("the first pass", 1, false, soon, later)
		forgets("a pass that changed nobody", 1, false)
		forgets("a change", 1, true, soon, later)
		forgets("a turn after another replica's", 3, false, soon, later)
		forgets("a second pass in it", 3, false)
		fails = errors.New("no answer")
		forgets("a change that the server gives no answer after", 3, true, soon, later)
		fails = nil
		forgets("the pass after that", 3, false, soon, later)
		forgets("one more", 3, false)

		times = nil
		l.scheduleFlush(3, true)
		l.cancelFlush()
		l.scheduleFlush(4, true)
		<-time.After(time.Minute)
		if len(times) > 0 || l.isFlushPending() {
			t.Errorf("after its end they are forgotten %d times", len(times))
		}
	})
}
