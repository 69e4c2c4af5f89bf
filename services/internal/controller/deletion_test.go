package controller_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// result returns the newest result for a store, and the TTL of its message.
func (b *testStreams) result(name string) (*eventv1.ResourceResult, string, error) {
	b.t.Helper()
	stream, err := b.js.Stream(b.t.Context(), topology.Results)
	if err != nil {
		return nil, "", err
	}
	msg, err := stream.GetLastMsgForSubject(b.t.Context(), topology.ResultSubject("test", storeKey(name)))
	if err != nil {
		return nil, "", err
	}
	var result eventv1.ResourceResult
	return &result, msg.Header.Get(jetstream.MsgTTLHeader), proto.Unmarshal(msg.Data, &result)
}

func TestResultsExpireWithTombstone(t *testing.T) {
	for name, reported := range map[string]eventv1.Outcome{
		"a pass says nothing of the deletion": eventv1.Outcome_OUTCOME_APPLIED,
		"a pass says what became of it":       eventv1.Outcome_OUTCOME_REJECTED,
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestStreams(t)
			b.snapshot(0)
			s := b.start(b.js)
			b.publish("a", "g", 1)
			s.becomes(t, "g", "a@1 ")
			s.set(func(_ context.Context, pass *controller.Request[string]) error {
				if o, gone := s.table.Tombstone(storeKey("a")); gone && reported != eventv1.Outcome_OUTCOME_APPLIED {
					pass.Report(o.Change, reported, "as it is")
				}
				return nil
			})
			b.publish("a", "g", 2, func(c *event.Change) { c.Deleted = true })
			eventually(t, func() error {
				r, ttl, err := b.result("a")
				if err != nil || r.GetResourceVersion() != "2" || r.GetOutcome() != reported || ttl != "168h0m0s" {
					return fmt.Errorf("result is %v for %q, %w", r, ttl, err)
				}
				return nil
			})
			b.settled()
			if r, _, err := b.result("a"); err != nil || r.GetOutcome() != reported {
				t.Errorf("in the end the result is %v, %v", r, err)
			}
		})
	}
}

func TestTombstoneDoesNotReportNewObjectOfName(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	s := b.start(b.js)
	b.publish("a", "g", 5)
	s.becomes(t, "g", "a@5 ")
	former := event.Change{Key: storeKey("a"), UID: "former", ResourceVersion: "3", Epoch: "e", Deleted: true, Object: []byte(`{"group":"old"}`)}
	data, err := former.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	msg := &nats.Msg{Subject: topology.TombstoneSubject(former.Key, former.UID), Header: topology.ChangeHeaders(former), Data: data}
	if _, err := b.js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	b.settled()
	s.becomes(t, "g", "a@5 ")
	if r, ttl, err := b.result("a"); err != nil || r.GetUid() != "uid-a" || ttl != "" {
		t.Errorf("result is %v for %q, %v", r, ttl, err)
	}
}
