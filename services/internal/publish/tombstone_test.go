package publish

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// stateOfOtherObject returns a state of another object with the same name.
func stateOfOtherObject(uid string, version int) event.Change {
	c := state("x", version)
	c.UID = uid
	return c
}

// tombstones returns the tombstones of x with their own subject, in the order of the stream.
func tombstones(t *testing.T, p *Publisher) (found []event.Change) {
	t.Helper()
	s := stream(t, p.js)
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for sequence := uint64(1); sequence <= info.State.LastSeq; sequence++ {
		msg, err := s.GetMsg(t.Context(), sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_, uid, err := topology.ParseChangeOrTombstoneSubject(msg.Subject)
		if err != nil || uid == "" {
			continue
		}
		c, err := event.UnmarshalChange(key("x"), msg.Data)
		if err != nil || c.UID != uid || !c.Deleted || msg.Header.Get(jetstream.MsgTTLHeader) != "168h0m0s" {
			t.Errorf("tombstone of %s is %+v with TTL %q, %v", uid, c, msg.Header.Get(jetstream.MsgTTLHeader), err)
		}
		found = append(found, c)
	}
	return found
}

func TestPublishChangeOfNewObjectStoresTombstone(t *testing.T) {
	deleted := func(c event.Change) event.Change { c.Deleted = true; return c }
	restored := func(c event.Change) event.Change { c.Epoch = event.NextEpoch(c.Epoch); return c }
	a, b := stateOfOtherObject("a", 1), stateOfOtherObject("b", 3)
	for name, tc := range map[string]struct {
		changes []event.Change
		want    []string
	}{
		"an object that changes":                {[]event.Change{a, stateOfOtherObject("a", 2)}, nil},
		"an object that is deleted":             {[]event.Change{a, deleted(stateOfOtherObject("a", 2))}, nil},
		"deleted and made again":                {[]event.Change{a, deleted(stateOfOtherObject("a", 2)), b}, []string{"a@2"}},
		"its deletion was missed":               {[]event.Change{a, b}, []string{"a@1"}},
		"two in a row":                          {[]event.Change{a, b, stateOfOtherObject("c", 5)}, []string{"a@1", "b@3"}},
		"the deletion of another":               {[]event.Change{a, deleted(b)}, []string{"a@1"}},
		"the same twice":                        {[]event.Change{a, b, b}, []string{"a@1"}},
		"one that is older":                     {[]event.Change{b, a}, nil},
		"the cluster went back":                 {[]event.Change{b, restored(stateOfOtherObject("b", 2))}, []string{"b@3"}},
		"deleted before the cluster went back":  {[]event.Change{deleted(b), restored(stateOfOtherObject("b", 2))}, []string{"b@3"}},
		"gone when the cluster had gone back":   {[]event.Change{b, deleted(restored(stateOfOtherObject("b", 2)))}, nil},
		"from before the cluster has gone back": {[]event.Change{restored(stateOfOtherObject("b", 2)), b}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(bus(t, 0))
			for _, c := range tc.changes {
				mustPublish(t, p, c, 0, PublicationOptions{})
			}
			var got []string
			for _, c := range tombstones(t, p) {
				got = append(got, fmt.Sprintf("%s@%s", c.UID, c.ResourceVersion))
				if len(c.Object) == 0 {
					t.Errorf("the tombstone of %s lacks the last state", c.UID)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("tombstones %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTombstonePrecedesNewObjectOfName(t *testing.T) {
	p := New(bus(t, 0))
	mustPublish(t, p, stateOfOtherObject("a", 1), 0, PublicationOptions{})
	ack := mustPublish(t, p, stateOfOtherObject("b", 2), 0, PublicationOptions{})
	stored, err := p.readLastMessage(t.Context(), topology.TombstoneSubject(key("x"), "a"), key("x"))
	if err != nil || stored.Sequence >= ack.Sequence {
		t.Errorf("tombstone at %d, the object at %d, %v", stored.Sequence, ack.Sequence, err)
	}
}

func TestTombstoneOfMetadataOnlyKindDropsContent(t *testing.T) {
	p := New(bus(t, 0))
	mustPublish(t, p, stateOfOtherObject("a", 1), 0, PublicationOptions{})
	mustPublish(t, p, stateOfOtherObject("b", 2), 0, PublicationOptions{MetadataOnly: true})
	if got := tombstones(t, p); len(got) != 1 || got[0].Object != nil {
		t.Errorf("tombstones %+v", got)
	}
}
