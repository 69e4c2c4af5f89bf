package publish

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestIsServerResponse(t *testing.T) {
	refused := func(code jetstream.ErrorCode) error {
		return fault.Unavailable(fmt.Errorf("publish: %w", &jetstream.APIError{Code: 503, ErrorCode: code}))
	}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"yes":                            {nil, true},
		"others were faster":             {fmt.Errorf("8 attempts: %w", errContended), true},
		"there is nothing":               {fmt.Errorf("read: %w", ErrNoMessage), true},
		"what is there says nothing":     {fmt.Errorf("read: %w", ErrMalformed), true},
		"too many consumers":             {refused(10026), true},
		"no such stream":                 {refused(jetstream.JSErrCodeStreamNotFound), true},
		"no leader":                      {refused(temporarilyUnavailable), false},
		"JetStream is off":               {refused(jetstream.JSErrCodeJetStreamNotEnabled), false},
		"nobody listens":                 {nats.ErrNoResponders, false},
		"the time is over":               {context.DeadlineExceeded, false},
		"the connection is closed":       {nats.ErrConnectionClosed, false},
		"no stream takes the subject":    {jetstream.ErrNoStreamResponse, false},
		"something that nobody foresees": {errors.New("?"), false},
	} {
		if got := IsServerResponse(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestRemoveMalformedMessageKeepsValidChanges(t *testing.T) {
	p := New(bus(t, 0))
	put := func(subject, data string) uint64 {
		t.Helper()
		ack, err := p.js.Publish(t.Context(), subject, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return ack.Sequence
	}
	change := mustPublish(t, p, state("good", 1), 0, PublicationOptions{}).Sequence
	squatter, wild := topology.ChangeSubject(key("bad")), "entail.changes.what"
	for name, test := range map[string]struct {
		subject  string
		sequence uint64
		removed  bool
	}{
		"a change":                          {topology.ChangeSubject(key("good")), change, false},
		"what does not decode":              {squatter, put(squatter, "not protobuf"), true},
		"what is on a subject of no object": {wild, put(wild, "x"), true},
		"what is on another subject":        {squatter, put(wild+".other", "x"), false},
		"what is not there":                 {squatter, 9999, false},
	} {
		t.Run(name, func(t *testing.T) {
			removed, err := p.RemoveMalformedMessage(t.Context(), test.subject, test.sequence)
			if err != nil || removed != test.removed {
				t.Fatalf("removed %t, %v; want %t", removed, err, test.removed)
			}
			_, err = stream(t, p.js).GetMsg(t.Context(), test.sequence)
			if gone := errors.Is(err, jetstream.ErrMsgNotFound); gone != (test.removed || test.sequence == 9999) {
				t.Errorf("it is gone: %t, %v", gone, err)
			}
		})
	}
}

func TestPublisherFailsWithoutStream(t *testing.T) {
	js := bus(t, 0)
	p, r := New(js), key("x").GroupResource
	for _, name := range []string{topology.Changes, topology.Sync} {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	for name, call := range map[string]func() error{
		"the newest of an object": func() error { _, err := p.LastChange(t.Context(), key("x")); return err },
		"a message is removed":    func() error { return p.RemoveMessage(t.Context(), 1) },
		"a malformed one":         func() error { _, err := p.RemoveMalformedMessage(t.Context(), "entail.changes.x", 1); return err },
		"a marker is taken back":  func() error { return p.DeleteMarker(t.Context(), "local", r) },
	} {
		if err := call(); !fault.IsUnavailable(err) || !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.StreamID(t.Context()); !errors.Is(err, ErrNoMessage) || fault.IsUnavailable(err) {
		t.Errorf("which life of the stream it is: %v", err)
	}
	if _, err := p.LastMarker(t.Context(), "local", r); !errors.Is(err, ErrNoMessage) {
		t.Errorf("the last marker: %v", err)
	}
	for _, err := range p.ReadAll(t.Context(), "local", r, false) {
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("what the stream holds: %v", err)
		}
	}
}

func TestCompareAndRepairStreams(t *testing.T) {
	js := bus(t, 0)
	p := New(js)
	before, err := p.StreamID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if differences, err := p.CompareStreams(t.Context(), 1); err != nil || len(differences) > 0 {
		t.Fatalf("as they were made, they differ in %v, %v", differences, err)
	}
	if err := js.DeleteStream(t.Context(), topology.Changes); err != nil {
		t.Fatal(err)
	}
	differences, err := p.CompareStreams(t.Context(), 1)
	if err != nil || len(differences) != 1 || !differences[0].Missing || differences[0].String() != "stream ENTAIL_CHANGES is missing" {
		t.Fatalf("without one they differ in %v, %v", differences, err)
	}
	if err := p.RepairStream(t.Context(), differences[0]); err != nil {
		t.Fatal(err)
	}
	if after, err := p.StreamID(t.Context()); err != nil || after == before {
		t.Errorf("its life is %s, %v; before it was %s", after, err, before)
	}
}

func TestReplayNeverRestoresOlderState(t *testing.T) {
	old, is, newer := state("x", 4), state("x", 5), state("x", 6)
	deleted := deletedState("x", 6)
	for name, test := range map[string]struct {
		c      event.Change
		stored event.Change
		replay bool
		done   bool
	}{
		"an older state is not published":   {c: old, stored: is, done: true},
		"the same state is there":           {c: is, stored: is, done: true},
		"a newer state is published":        {c: newer, stored: is},
		"a deletion is newer":               {c: deleted, stored: is},
		"nothing comes after a deletion":    {c: newer, stored: deleted, done: true},
		"a replay of the same is published": {c: is, stored: is, replay: true},
		"a replay of an older is not":       {c: old, stored: is, replay: true, done: true},
	} {
		done, err := isStoredNewEnough(test.c, StoredMessage{Change: test.stored}, nil, PublicationOptions{Replay: test.replay})
		if err != nil || done != test.done {
			t.Errorf("%s: done %t, %v", name, done, err)
		}
	}
	for _, err := range []error{ErrNoMessage, ErrMalformed} {
		if done, err := isStoredNewEnough(old, StoredMessage{}, err, PublicationOptions{}); done || err != nil {
			t.Errorf("where nothing is: %t, %v", done, err)
		}
	}
	if _, err := isStoredNewEnough(old, StoredMessage{}, nats.ErrTimeout, PublicationOptions{}); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("where nobody answers: %v", err)
	}
}
