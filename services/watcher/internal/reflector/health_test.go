package reflector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// newTerm returns the health of a leader that follows one kind with this name.
func newTerm() (h *Health, name string, end func()) {
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

func TestWhatIsNamedHoldsUpNeitherReadinessNorBarriers(t *testing.T) {
	h, r := &Health{}, &reflector{cfg: Config{Halt: &halted{}}, targets: &targets{}, barriers: written()}
	stores, secrets := newKindReflector(r, kinds.Stores(), nil), newKindReflector(r, kinds.Secrets().In("team-a"), nil)
	r.kinds = []*kindReflector{stores, secrets}
	defer h.beginTerm(r.kinds)()
	h.recordComplete(stores.kindLabel())
	h.recordInterrupted(secrets.kindLabel(), errAgain)
	wants(t, h.Cluster(), "")
	defer stores.openWatch()()
	stores.stream = "one"
	if _, ok := r.nextBarrier(time.Now()); !ok {
		t.Error("there is no barrier")
	}
	if secrets.kindLabel() != "secrets/team-a" {
		t.Errorf("it is called %s", secrets.kindLabel())
	}
}

func TestALeaderIsReadyWhileEveryKindIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, name, end := newTerm()
		wants(t, h.Cluster(), name+" is not on the bus yet")
		h.recordComplete(name)
		wants(t, h.Cluster(), "")
		<-time.After(unheard)
		h.recordAnswer(name)
		<-time.After(unheard)
		wants(t, h.Cluster(), "")
		<-time.After(time.Second)
		wants(t, h.Cluster(), "the API server has reported nothing about "+name+" for 3m1s")
		h.recordAnswer(name)
		h.recordInterrupted(name, errRewound)
		wants(t, h.Cluster(), name+" is not followed: "+errRewound.Error())
		h.recordComplete(name)
		wants(t, h.Cluster(), "")
		h.recordInterrupted(name, errAgain)
		end()
		wants(t, h.Cluster(), "")
	})
}

func TestALeaderIsReadyWhileTheBusTakesWhatItPublishes(t *testing.T) {
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
				h, _, end := newTerm()
				began := time.Now()
				<-time.After(unacknowledged)
				h.recordPublication(began, test.err)
				wants(t, h.Bus(), "")
				<-time.After(7 * time.Second)
				h.recordPublication(time.Now(), test.err)
				wants(t, h.Bus(), "nothing acknowledged for 12s: "+test.err.Error())
				if got := h.Unanswered(); got != test.unanswered {
					t.Errorf("unanswered for %s, want %s", got, test.unanswered)
				}
				h.recordPublication(time.Now(), nil)
				wants(t, h.Bus(), "")
				if h.Unanswered() != 0 {
					t.Error("an acknowledgement changes nothing")
				}
				h.recordPublication(time.Now(), test.err)
				<-time.After(unacknowledged + 1)
				end()
				wants(t, h.Bus(), "")
			})
		})
	}
}

func TestAStreamThatCannotBeLookedAtIsNoAnswerEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := newTerm()
		h.streamChecked(time.Now(), errors.Join(errors.New("open stream"), nats.ErrNoResponders))
		<-time.After(time.Minute)
		h.recordPublication(time.Now(), nil)
		if got := h.Unanswered(); got != time.Minute {
			t.Errorf("unanswered for %s", got)
		}
		h.streamChecked(time.Now(), jetstream.ErrStreamNotFound)
		if got := h.Unanswered(); got != 0 {
			t.Errorf("unanswered for %s", got)
		}
	})
}

func TestABusThatIsFullIsToldOfAndLosesNothing(t *testing.T) {
	const room, large = 1 << 20, 512 << 10
	b, c := newBus(t), newCluster()
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
		err := cfg.Health.Bus()
		if refusal, ok := errors.AsType[*jetstream.APIError](err); !ok || refusal.ErrorCode == 10008 { // Code 10008 means that NATS has no leader yet.
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	b.stop()
	b.room = 0
	b.start()
	b.becomes(c)
	eventually(t, cfg.Health.Bus)
}
