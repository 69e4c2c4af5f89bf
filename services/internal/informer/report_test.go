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

func TestInformerLogsAnIncompleteViewOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		v := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go v.reportIncompleteLoop(ctx)
		<-time.After(reportAfter - time.Second)
		if log.Len() > 0 {
			t.Errorf("got %q too early", log.String())
		}
		<-time.After(time.Hour)
		cancel()
		synctest.Wait()
		if got := strings.Count(log.String(), "the view is incomplete"); got != 1 {
			t.Errorf("got %d lines, want 1:\n%s", got, log.String())
		}
	})
}
