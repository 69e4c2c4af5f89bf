package results

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/topology"
)

func always() bool { return true }

// runInBackground runs a function in the background until the test ends.
func runInBackground(t *testing.T, run func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

func eventually(t *testing.T, what func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		err := what()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func holds(t *testing.T, js jetstream.JetStream, stream string, want uint64) func() error {
	return func() error {
		s, err := js.Stream(t.Context(), stream)
		if err != nil {
			return err
		}
		if got := s.CachedInfo().State.Msgs; got != want {
			return fmt.Errorf("%s holds %d messages, want %d", stream, got, want)
		}
		return nil
	}
}

func TestPublisherRepublishesLostResults(t *testing.T) {
	for name, harm := range map[string]func(ctx context.Context, js jetstream.JetStream) error{
		"purged": func(ctx context.Context, js jetstream.JetStream) error {
			s, err := js.Stream(ctx, topology.Results)
			return errors.Join(err, s.Purge(ctx))
		},
		"deleted": func(ctx context.Context, js jetstream.JetStream) error {
			return errors.Join(js.DeleteStream(ctx, topology.Results), topology.EnsureStreams(ctx, js, 1))
		},
		"made to hold one message": func(ctx context.Context, js jetstream.JetStream) error {
			s, err := js.Stream(ctx, topology.Results)
			config := s.CachedInfo().Config
			config.MaxMsgs = 1
			_, changed := js.UpdateStream(ctx, config)
			return errors.Join(err, changed, topology.EnsureStreams(ctx, js, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			js := bus(t)
			p := New(js, "test", always, slog.New(slog.DiscardHandler))
			p.interval = 5 * time.Millisecond
			say := func() {
				for i := range 20 {
					p.Report(t.Context(), Result{Change: state(fmt.Sprint(i), 1), Outcome: eventv1.Outcome_OUTCOME_APPLIED})
				}
			}
			runInBackground(t, func(ctx context.Context) { p.Run(ctx, say) })
			say()
			eventually(t, holds(t, js, topology.Results, 20))
			if err := harm(t.Context(), js); err != nil {
				t.Fatal(err)
			}
			eventually(t, holds(t, js, topology.Results, 20))
		})
	}
}

func TestOutboxPublishesNewestWaitingResult(t *testing.T) {
	js := bus(t)
	p := New(js, "test", always, slog.New(slog.DiscardHandler))
	for version := range 5 {
		c := state("a", version+1)
		c.Generation = int64(version + 1)
		p.Report(t.Context(), Result{Change: c, Outcome: eventv1.Outcome_OUTCOME_APPLIED})
	}
	p.Flush()
	s, err := js.Stream(t.Context(), topology.Results)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().State.LastSeq; got != 1 {
		t.Errorf("%d publications, want 1", got)
	}
}

func TestOutboxKeepsOrderAndDropsPublished(t *testing.T) {
	const all = 3*batch + 10
	o := newOutbox(nil, always, nil)
	for i := range all {
		o.putMessage(&outgoingMessage{subject: fmt.Sprint(i)})
	}
	first := o.nextBatch()
	for i, m := range first {
		if i != 3 { // This one is not acknowledged.
			o.removeMessage(m)
		}
	}
	want := append([]string{"3"}, numbers(batch, 2*batch-1)...)
	if got := keysOf(o.nextBatch()); len(first) != batch || !slices.Equal(got, want) {
		t.Errorf("after %d the next are %v, want %v", len(first), got, want)
	}
	if n := len(o.order); n != all-batch+1 {
		t.Errorf("%d are in order, want %d", n, all-batch+1)
	}
	var rest []string
	for some := o.nextBatch(); len(some) > 0; some = o.nextBatch() {
		rest = append(rest, keysOf(some)...)
		for _, m := range some {
			o.removeMessage(m)
		}
	}
	if want := append([]string{"3"}, numbers(batch, all)...); !slices.Equal(rest, want) {
		t.Errorf("the rest are %v, want %v", rest, want)
	}
}

func numbers(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func keysOf(messages []*outgoingMessage) (keys []string) {
	for _, m := range messages {
		keys = append(keys, m.subject)
	}
	return keys
}
