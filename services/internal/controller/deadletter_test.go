package controller_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestDeadLetterOfTooLargeMessageOmitsBody(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	b.start(b.js)
	b.awaitConsumer()
	largest := make([]byte, b.js.Conn().MaxPayload()-50)
	if _, err := b.js.Publish(t.Context(), topology.ChangeSubject(storeKey("bad")), largest); err != nil {
		t.Fatal(err)
	}
	b.settled()
	eventually(t, func() error {
		if len(b.letters()) == 0 {
			return errors.New("no dead letter")
		}
		return nil
	})
	letter := b.letters()[0]
	if reason := letter.Header.Get(topology.ReasonHeader); len(letter.Data) != 0 || !strings.Contains(reason, "too large to be kept here") {
		t.Errorf("the letter has %d bytes and says %q", len(letter.Data), reason)
	}
}

func TestDeadLetterFailureIsLogged(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	if err := b.js.DeleteStream(t.Context(), topology.DeadLetters); err != nil {
		t.Fatal(err)
	}
	var log concurrentLog
	b.start(b.js, func(c *controller.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	b.awaitConsumer()
	if _, err := b.js.Publish(t.Context(), topology.ChangeSubject(storeKey("bad")), []byte("?")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if !strings.Contains(log.String(), "publish dead letter") {
			return errors.New("nothing was said of it")
		}
		return nil
	})
	if err := topology.EnsureStreams(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	b.settled()
	if got := len(b.letters()); got != 1 {
		t.Errorf("%d dead letters, want 1", got)
	}
}

// concurrentLog is a log that a test can read while it is written.
type concurrentLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *concurrentLog) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *concurrentLog) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
