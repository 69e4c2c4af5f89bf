package publish

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestPublishChangeRoundTripsHeaders(t *testing.T) {
	p := New(bus(t, 0))
	c := state("a.b", 7)
	c.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ack := mustPublish(t, p, c, 0, PublicationOptions{ContentHash: "m"})
	msg, err := stream(t, p.js).GetMsg(t.Context(), ack.Sequence)
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]string{
		"Nats-Msg-Id": "local/epoch/uid-a.b/7/upsert", "Content-Type": "application/protobuf", HeaderSchema: "1",
		topology.EpochHeader: "epoch", topology.UIDHeader: "uid-a.b", topology.VersionHeader: "7", topology.OperationHeader: "upsert", HeaderContentHash: "m", "traceparent": c.Traceparent,
	} {
		if got := msg.Header.Get(header); got != want {
			t.Errorf("header %s is %q, want %q", header, got, want)
		}
	}
	stored := mustLast(t, p, "a.b")
	if stored.Entry != ack.Entry || !bytes.Equal(stored.Change.Object, c.Object) || stored.PublishedAt.IsZero() {
		t.Errorf("stored %+v, acknowledged %+v", stored, ack)
	}
}

func TestPublishChangeResolvesConflictByNewerState(t *testing.T) {
	replayed := PublicationOptions{Replay: true}
	otherEpoch := state("x", 3)
	otherEpoch.Epoch = "restored"
	for name, tc := range map[string]struct {
		there, mine event.Change
		opts        PublicationOptions
		wantStale   bool
		wantVersion string
	}{
		"an older state is overwritten":                      {there: state("x", 5), mine: state("x", 6), wantVersion: "6"},
		"a newer state stays":                                {there: state("x", 6), mine: state("x", 5), wantStale: true, wantVersion: "6"},
		"the same state stays: its acknowledgement was lost": {there: state("x", 5), mine: state("x", 5), wantStale: true, wantVersion: "5"},
		"a deletion at the version of the list wins":         {there: state("x", 5), mine: deletedState("x", 5), wantVersion: "5"},
		"a state as old as the deletion loses":               {there: deletedState("x", 5), mine: state("x", 5), wantStale: true, wantVersion: "5"},
		"an object made again replaces its deletion":         {there: deletedState("x", 5), mine: state("x", 6), wantVersion: "6"},
		"versions of two epochs do not compare":              {there: state("x", 5), mine: otherEpoch, wantVersion: "3"},
		"a replay goes over the same state":                  {there: state("x", 5), mine: state("x", 5), opts: replayed, wantVersion: "5"},
		"a replay does not bring back an older state":        {there: state("x", 6), mine: state("x", 5), opts: replayed, wantStale: true, wantVersion: "6"},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(bus(t, 0))
			first := mustPublish(t, p, tc.there, 0, PublicationOptions{ContentHash: "there"})
			ack := mustPublish(t, p, tc.mine, 99, PublicationOptions{ContentHash: "mine", Replay: tc.opts.Replay})
			stored := mustLast(t, p, "x")
			if ack.Stale != tc.wantStale || ack.Entry != stored.Entry || stored.Version != tc.wantVersion {
				t.Errorf("acknowledged %+v, stored %+v, want stale %v and version %s", ack, stored.Entry, tc.wantStale, tc.wantVersion)
			}
			if wrote := stored.Sequence != first.Sequence; wrote == tc.wantStale {
				t.Errorf("stored at %d after %d, yet stale is %v", stored.Sequence, first.Sequence, tc.wantStale)
			}
		})
	}
}

func TestPublishChangeOfDeposedLeaderDoesNotOverwrite(t *testing.T) {
	js := bus(t, 0)
	deposed, leader := New(js), New(js)
	old := mustPublish(t, deposed, state("x", 1), 0, PublicationOptions{})
	now := mustPublish(t, leader, state("x", 9), old.Sequence, PublicationOptions{})
	for version := 2; version < 9; version++ {
		ack := mustPublish(t, deposed, state("x", version), old.Sequence, PublicationOptions{})
		if !ack.Stale || ack.Sequence != now.Sequence || ack.Version != "9" {
			t.Fatalf("version %d: %+v, want to be told of version 9 at %d", version, ack, now.Sequence)
		}
	}
}

func TestPublishChangeRepublishesPurgedStateWithinDedupWindow(t *testing.T) {
	for name, remove := range map[string]func(context.Context, jetstream.Stream, uint64) error{
		"the stream is purged": func(ctx context.Context, s jetstream.Stream, _ uint64) error { return s.Purge(ctx) },
		"the subject is purged": func(ctx context.Context, s jetstream.Stream, _ uint64) error {
			return s.Purge(ctx, jetstream.WithPurgeSubject(topology.ChangeSubject(key("x"))))
		},
		"the message is deleted": func(ctx context.Context, s jetstream.Stream, seq uint64) error { return s.DeleteMsg(ctx, seq) },
	} {
		for expectation, expected := range map[string]uint64{"known to be gone": 0, "believed to be there": 1} {
			t.Run(name+", "+expectation, func(t *testing.T) {
				p := New(bus(t, 0))
				ack := mustPublish(t, p, state("x", 5), 0, PublicationOptions{})
				if err := remove(t.Context(), stream(t, p.js), ack.Sequence); err != nil {
					t.Fatal(err)
				}
				again := mustPublish(t, p, state("x", 5), expected, PublicationOptions{})
				if stored := mustLast(t, p, "x"); again.Stale || stored.Sequence != again.Sequence || again.Sequence == ack.Sequence {
					t.Errorf("first %+v, again %+v, stored %+v", ack, again, stored.Entry)
				}
			})
		}
	}
}

func TestPublishChangeOverwritesMalformedMessage(t *testing.T) {
	p := New(bus(t, 0))
	mustPublish(t, p, state("x", 5), 0, PublicationOptions{})
	if _, err := p.js.Publish(t.Context(), topology.ChangeSubject(key("x")), []byte("not protobuf")); err != nil {
		t.Fatal(err)
	}
	squatter, err := p.LastChange(t.Context(), key("x"))
	if !errors.Is(err, ErrMalformed) || squatter.Sequence == 0 {
		t.Fatalf("last is %+v, %v; want its place and ErrMalformed", squatter, err)
	}
	for _, expected := range []uint64{1, squatter.Sequence} {
		if ack := mustPublish(t, p, state("x", 5), expected, PublicationOptions{}); mustLast(t, p, "x").Sequence != ack.Sequence {
			t.Errorf("expecting %d: acknowledged %+v, stored %+v", expected, ack, mustLast(t, p, "x").Entry)
		}
	}
}

func TestRemoveMessageRepairsSubjectWithoutObject(t *testing.T) {
	p := New(bus(t, 0))
	squatter, err := p.js.Publish(t.Context(), topology.ChangeSubject(key("x")), []byte("not protobuf"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.RemoveMessage(t.Context(), squatter.Sequence); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.LastChange(t.Context(), key("x")); !errors.Is(err, ErrNoMessage) {
		t.Errorf("last: %v, want ErrNone", err)
	}
}

func TestReplayReachesConsumer(t *testing.T) {
	p := New(bus(t, 0))
	first := mustPublish(t, p, state("x", 5), 0, PublicationOptions{})
	second := mustPublish(t, p, state("x", 5), first.Sequence, PublicationOptions{Replay: true})
	third := mustPublish(t, p, state("x", 5), first.Sequence, PublicationOptions{Replay: true})
	if first.Sequence >= second.Sequence || second.Sequence >= third.Sequence {
		t.Errorf("sequences %d, %d, %d do not grow", first.Sequence, second.Sequence, third.Sequence)
	}
	msg, err := stream(t, p.js).GetMsg(t.Context(), third.Sequence)
	if err != nil || msg.Header.Get(topology.ReplayHeader) == "" {
		t.Errorf("replayed message lacks %s (%v)", topology.ReplayHeader, err)
	}
}

func TestTombstoneExpires(t *testing.T) {
	p := New(bus(t, 0))
	live := mustPublish(t, p, state("x", 5), 0, PublicationOptions{})
	tombstone := mustPublish(t, p, deletedState("x", 6), live.Sequence, PublicationOptions{TTL: time.Second})
	mustPublish(t, p, deletedState("y", 6), 0, PublicationOptions{})
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := p.LastChange(t.Context(), key("x"))
		if errors.Is(err, ErrNoMessage) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a deletion with a TTL of 1 s is still there: %v", err)
		}
		<-time.After(50 * time.Millisecond)
	}
	mustPublish(t, p, state("x", 7), tombstone.Sequence, PublicationOptions{})
	msg, err := stream(t, p.js).GetLastMsgForSubject(t.Context(), topology.ChangeSubject(key("y")))
	if err != nil || msg.Header.Get(jetstream.MsgTTLHeader) != "168h0m0s" {
		t.Errorf("TTL of a deletion is %q, want 7 days (%v)", msg.Header.Get(jetstream.MsgTTLHeader), err)
	}
}

func TestPublishChangeOmitsTooLargeObject(t *testing.T) {
	const maxPayload = 64 << 10
	p := New(bus(t, maxPayload))
	for name, tc := range map[string]struct {
		size int
		want bool
	}{
		"small":        {size: 1000},
		"just fits":    {size: maxPayload - maxHeaderBytes - 200},
		"just too big": {size: maxPayload - maxHeaderBytes, want: true},
		"huge":         {size: 1_400_000, want: true},
	} {
		c := state(strings.ReplaceAll(name, " ", "-"), 1)
		c.Object = bytes.Repeat([]byte("x"), tc.size)
		c.Traceparent = strings.Repeat("t", 55)
		mustPublish(t, p, c, 0, PublicationOptions{ContentHash: strings.Repeat("m", 44)})
		stored := mustLast(t, p, c.Key.Name)
		if stored.Change.Omitted != tc.want || (len(stored.Change.Object) == tc.size) == tc.want {
			t.Errorf("%s: omitted is %v with %d bytes", name, stored.Change.Omitted, len(stored.Change.Object))
		}
	}
}

func TestPublishWithoutStreamIsUnavailable(t *testing.T) {
	p := New(bus(t, 0))
	if err := p.js.DeleteStream(t.Context(), topology.Changes); err != nil {
		t.Fatal(err)
	}
	if _, err := p.PublishChange(t.Context(), state("x", 1), 0, PublicationOptions{}); !fault.IsUnavailable(err) {
		t.Errorf("error is %v, want one marked unavailable", err)
	}
}
