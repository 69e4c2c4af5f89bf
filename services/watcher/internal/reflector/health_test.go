package reflector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// newLeaderHealth returns the health of a leader that follows one kind with this name.
func newLeaderHealth() (h *Health, name string, end func()) {
	h = &Health{}
	k := &kindReflector{kind: kinds.Stores()}
	return h, k.kindLabel(), h.beginTerm([]*kindReflector{k})
}

func wants(t *testing.T, err error, text string) {
	t.Helper()
	if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
		t.Errorf("got %v, want %q", err, text)
	}
}

func TestReferencedOnlyKindDoesNotBlockReadinessOrBarriers(t *testing.T) {
	h, r := &Health{}, &reflector{cfg: Config{Halt: &inMemoryHalt{}}, targets: &targetKinds{}, barriers: newAcceptedWriter()}
	stores, secrets := newKindReflector(r, kinds.Stores(), nil), newKindReflector(r, kinds.Secrets().InNamespace("team-a"), nil)
	r.kinds = []*kindReflector{stores, secrets}
	defer h.beginTerm(r.kinds)()
	h.recordKindComplete(stores.kindLabel())
	h.recordKindInterrupted(secrets.kindLabel(), errAgain)
	wants(t, h.ClusterErr(), "")
	defer stores.markWatchOpen()()
	stores.stream = "one"
	if _, err := r.buildNextBarrier(time.Now()); err != nil {
		t.Errorf("there is no barrier: %v", err)
	}
	if secrets.kindLabel() != "secrets/team-a" {
		t.Errorf("it is called %s", secrets.kindLabel())
	}
}

func TestClusterErrRequiresEveryKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, name, end := newLeaderHealth()
		wants(t, h.ClusterErr(), name+" is not on the bus yet")
		h.recordKindComplete(name)
		wants(t, h.ClusterErr(), "")
		<-time.After(unheard)
		h.recordKindAnswer(name)
		<-time.After(unheard)
		wants(t, h.ClusterErr(), "")
		<-time.After(time.Second)
		wants(t, h.ClusterErr(), "the API server has reported nothing about "+name+" for 3m1s")
		h.recordKindAnswer(name)
		h.recordKindInterrupted(name, errRewound)
		wants(t, h.ClusterErr(), name+" is not followed: "+errRewound.Error())
		h.recordKindComplete(name)
		wants(t, h.ClusterErr(), "")
		h.recordKindInterrupted(name, errAgain)
		end()
		wants(t, h.ClusterErr(), "")
	})
}

func TestLeaderIsReadyWhileItWritesBarriers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, end := newLeaderHealth()
		wants(t, h.BarrierErr(), "")
		h.recordBarrier(time.Now(), errUnread)
		<-time.After(unacknowledged)
		wants(t, h.BarrierErr(), "")
		<-time.After(time.Second)
		h.recordBarrier(time.Now(), errRestored)
		wants(t, h.BarrierErr(), "none written for 6s: "+errRestored.Error())
		h.recordBarrier(time.Now(), nil)
		wants(t, h.BarrierErr(), "")
		h.recordBarrier(time.Now(), errUnread)
		<-time.After(time.Minute)
		end()
		wants(t, h.BarrierErr(), "")
	})
}

func TestLeaderLogsEachCauseOfMissingBarrierOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, end := newLeaderHealth()
		defer end()
		var log bytes.Buffer
		r := &reflector{cfg: Config{Health: h, Log: slog.New(slog.NewTextHandler(&log, nil))}}
		report := func(cause error, lasts time.Duration) {
			for range lasts / time.Second {
				r.reportBarrier(t.Context(), cause)
				<-time.After(time.Second)
			}
		}
		report(errUnread, unacknowledged) // Too short.
		report(nil, time.Minute)
		report(errUnread, time.Hour)
		report(errRestored, time.Hour)
		report(nil, time.Minute)
		for line, want := range map[string]int{
			"no barrier is written": 2, `cause="` + errUnread.Error(): 1, `cause="` + errRestored.Error(): 1, "barriers are written again": 1,
		} {
			if got := strings.Count(log.String(), line); got != want {
				t.Errorf("got %d lines with %q, want %d:\n%s", got, line, want, log.String())
			}
		}
	})
}

func TestBusErrFollowsPublications(t *testing.T) {
	full := &jetstream.APIError{Code: 503, ErrorCode: 10023, Description: "insufficient resources"}
	lost := &jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "temporarily unavailable"}
	tests := map[string]struct {
		err        error
		unanswered time.Duration
	}{
		"no server answers":               {nats.ErrTimeout, 12 * time.Second},
		"no stream answers":               {jetstream.ErrNoStreamResponse, 12 * time.Second},
		"the context of an attempt ended": {context.DeadlineExceeded, 12 * time.Second},
		"a server without the others":     {lost, 12 * time.Second},
		"full, for whoever publishes":     {full, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, _, end := newLeaderHealth()
				began := time.Now()
				<-time.After(unacknowledged)
				h.recordPublication(began, test.err)
				wants(t, h.BusErr(), "")
				<-time.After(7 * time.Second)
				h.recordPublication(time.Now(), test.err)
				wants(t, h.BusErr(), "nothing acknowledged for 12s: "+test.err.Error())
				if got := h.BusSilence(); got != test.unanswered {
					t.Errorf("unanswered for %s, want %s", got, test.unanswered)
				}
				h.recordPublication(time.Now(), nil)
				wants(t, h.BusErr(), "")
				if h.BusSilence() != 0 {
					t.Error("an acknowledgement changes nothing")
				}
				h.recordPublication(time.Now(), test.err)
				<-time.After(unacknowledged + 1)
				end()
				wants(t, h.BusErr(), "")
			})
		})
	}
}

func TestBusSilenceCountsFailedStreamChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := newLeaderHealth()
		h.recordStreamCheck(time.Now(), errors.Join(errors.New("open stream"), nats.ErrNoResponders))
		<-time.After(time.Minute)
		h.recordPublication(time.Now(), nil)
		if got := h.BusSilence(); got != time.Minute {
			t.Errorf("unanswered for %s", got)
		}
		h.recordStreamCheck(time.Now(), jetstream.ErrStreamNotFound)
		if got := h.BusSilence(); got != 0 {
			t.Errorf("unanswered for %s", got)
		}
	})
}

func TestFullStreamIsReportedAndDoesNotLoseChanges(t *testing.T) {
	const room, large = 1 << 20, 512 << 10
	b, c := newTestNATS(t), newFakeSource()
	c.apply("small", "v1", "")
	cfg := b.config(c)
	b.run(cfg)
	b.becomes(c)
	b.stop()
	b.room = room
	b.start()
	for i := range 2 * room / large {
		c.apply(fmt.Sprint("large-", i), strings.Repeat("x", large), "")
	}
	eventually(t, func() error {
		err := cfg.Health.BusErr()
		if refusal, ok := errors.AsType[*jetstream.APIError](err); !ok || refusal.ErrorCode == 10008 { // Code 10008 means that NATS has no leader yet.
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	b.stop()
	b.room = 0
	b.start()
	b.becomes(c)
	eventually(t, cfg.Health.BusErr)
}
