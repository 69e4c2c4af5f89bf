package results

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestReportPublishesResultOnce(t *testing.T) {
	applied, rejected := eventv1.Outcome_OUTCOME_APPLIED, eventv1.Outcome_OUTCOME_REJECTED
	ungenerated := func(version int) Result { return Result{Change: state("a", version), Outcome: applied} }
	generated := func(version int) Result {
		r := ungenerated(version)
		r.Change.Generation = 1
		return r
	}
	for name, c := range map[string]struct {
		results []Result
		want    uint64
	}{
		"the same twice":                 {[]Result{generated(1), generated(1)}, 1},
		"another version":                {[]Result{generated(1), generated(2)}, 1},
		"of what has no generations":     {[]Result{ungenerated(1), ungenerated(2)}, 2},
		"another outcome":                {[]Result{generated(1), {Change: generated(1).Change, Outcome: rejected}}, 2},
		"what ends differently, cut off": {[]Result{{Change: state("a", 1), Message: long("x")}, {Change: state("a", 1), Message: long("y")}}, 1},
		"a deletion":                     {[]Result{{Change: deletedState("a")}, {Change: deletedState("a")}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			js := bus(t)
			p := New(js, "test", always, slog.New(slog.DiscardHandler))
			for _, result := range c.results {
				p.Report(t.Context(), result)
				p.Flush()
			}
			s, err := js.Stream(t.Context(), topology.Results)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.CachedInfo().State.LastSeq; got != c.want {
				t.Errorf("%d results, want %d", got, c.want)
			}
		})
	}
}

func TestDeletionResultExpiresWithTombstone(t *testing.T) {
	js := bus(t)
	p := New(js, "test", always, slog.New(slog.DiscardHandler))
	dated := deletedState("dated")
	dated.ExpiresAt = time.Now().Add(time.Hour + 30*time.Minute)
	late := deletedState("late")
	late.ExpiresAt = time.Now().Add(-time.Hour)
	for _, c := range []event.Change{state("alive", 1), deletedState("gone"), dated, late} {
		p.Report(t.Context(), Result{Change: c})
	}
	p.Flush()
	s, err := js.Stream(t.Context(), topology.Results)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"alive": "", "gone": "168h0m0s", "dated": "1h29m", "late": "1s"} {
		msg, err := s.GetLastMsgForSubject(t.Context(), topology.ResultSubject("test", key(name)))
		if errors.Is(err, jetstream.ErrMsgNotFound) && name == "late" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := msg.Header.Get(jetstream.MsgTTLHeader); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: TTL %q, want %q", name, got, want)
		}
	}
}

func long(end string) string { return strings.Repeat("ä", 2000) + end }

func TestReportAcceptsAnyText(t *testing.T) {
	js := bus(t)
	p := New(js, "test", always, slog.New(slog.DiscardHandler))
	p.Report(t.Context(), Result{
		Change: state("a", 1), Outcome: eventv1.Outcome_OUTCOME_REJECTED, Message: "a\xff" + long(""), Writes: 2,
	})
	p.Flush()
	s, err := js.Stream(t.Context(), topology.Results)
	if err != nil {
		t.Fatal(err)
	}
	msg, err := s.GetLastMsgForSubject(t.Context(), topology.ResultSubject("test", key("a")))
	if err != nil {
		t.Fatal(err)
	}
	var result eventv1.ResourceResult
	if err := proto.Unmarshal(msg.Data, &result); err != nil {
		t.Fatal(err)
	}
	if got := result.GetMessage(); !strings.HasPrefix(got, "aää") || !strings.HasSuffix(got, "ä…") || len(got) > maxMessage || result.GetWrites() != 2 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
