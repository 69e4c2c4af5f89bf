package informer

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestInformerLogsIncompleteViewOnce(t *testing.T) {
	for after, want := range map[time.Duration]int{reportAfter - time.Second: 0, time.Hour: 1} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			v := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
			ctx, cancel := context.WithCancel(t.Context())
			go v.reportIncompleteLoop(ctx)
			<-time.After(after)
			cancel()
			synctest.Wait()
			if got := strings.Count(log.String(), "the informer is incomplete"); got != want {
				t.Errorf("got %d lines after %s, want %d:\n%s", got, after, want, log.String())
			}
		})
	}
}
