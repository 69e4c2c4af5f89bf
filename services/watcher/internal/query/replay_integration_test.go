//go:build integration

package query

import (
	"errors"
	"testing"

	"connectrpc.com/connect"
	"github.com/nats-io/nats.go"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

func ref(name string) *syncv1.ReplayRequest {
	k := key(name)
	k.Cluster = "" // It stands for this cluster.
	return &syncv1.ReplayRequest{What: &syncv1.ReplayRequest_Ref{Ref: k.ToObjectRef()}}
}

func letter(id uint64) *syncv1.ReplayRequest {
	return &syncv1.ReplayRequest{What: &syncv1.ReplayRequest_DeadLetterId{DeadLetterId: id}}
}

// replayed replays, and returns the message that is then on the subject of name.
func (b *queryEnv) replayed(request *syncv1.ReplayRequest, name string) publish.StoredMessage {
	b.t.Helper()
	got, err := b.Replay(b.t.Context(), request)
	if err != nil {
		b.t.Fatal(err)
	}
	last, err := b.cfg.Publisher.LastChange(b.t.Context(), key(name))
	if err != nil {
		b.t.Fatal(err)
	}
	if got.GetSequence() != last.Sequence || got.GetRef().GetName() != name || got.GetRef().GetCluster() != "local" {
		b.t.Errorf("response is %v, on the bus is %+v", got, last.Entry)
	}
	return last
}

func TestReplayPublishesPresentState(t *testing.T) {
	gone := state("x", 20)
	gone.Deleted = true
	for name, tc := range map[string]struct {
		published, present event.Change
		exists             bool
		want               string
		again, deleted     bool
	}{
		"as it is on the bus":                         {published: state("x", 10), present: state("x", 10), exists: true, want: "10", again: true},
		"newer than on the bus":                       {published: state("x", 10), present: state("x", 20), exists: true, want: "20", again: true},
		"the bus has something newer since":           {published: state("x", 20), present: state("x", 10), exists: true, want: "20"},
		"a deletion":                                  {published: gone, want: "20", again: true, deleted: true},
		"gone, and the deletion is still on its way":  {published: state("x", 10), want: "10", again: true},
		"exists, though the bus knows a deletion yet": {published: gone, present: state("x", 30), exists: true, want: "30", again: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newQueryEnv(t)
			before := b.publish(tc.published)
			if tc.exists {
				b.cluster.objects["/x"] = source.Object{Change: tc.present, ContentHash: "m"}
			}
			last := b.replayed(ref("x"), "x")
			if last.Version != tc.want || last.Deleted != tc.deleted || (last.Sequence > before.Sequence) != tc.again {
				t.Errorf("on the bus is %+v after %+v", last.Entry, before.Entry)
			}
			if last.ContentHash != "m" {
				t.Errorf("meaning is %q: the next sweep would publish once more", last.ContentHash)
			}
		})
	}
}

func TestReplayReplacesMalformedMessage(t *testing.T) {
	b := newQueryEnv(t)
	b.exists(state("x", 10))
	b.send(&nats.Msg{Subject: topology.ChangeSubject(key("x")), Data: []byte("?")})
	if last := b.replayed(ref("x"), "x"); last.Version != "10" {
		t.Errorf("on the bus is %+v", last.Entry)
	}
	b.send(&nats.Msg{Subject: topology.ChangeSubject(key("ghost")), Data: []byte("?")})
	if got, err := b.Replay(t.Context(), ref("ghost")); err != nil || got.GetSequence() != 0 {
		t.Errorf("response is %v, %v", got, err)
	}
	if _, err := b.cfg.Publisher.LastChange(t.Context(), key("ghost")); !errors.Is(err, publish.ErrNoMessage) {
		t.Errorf("a malformed message about nothing is still there: %v", err)
	}
}

func TestReplayRemovesDeadLetter(t *testing.T) {
	b := newQueryEnv(t)
	b.exists(state("x", 10))
	id := b.letter(topology.StoreSync, topology.ChangeSubject(key("x")), []byte("?"))
	b.replayed(letter(id), "x")
	_, err := b.Replay(t.Context(), letter(id))
	expectRefused(t, err, connect.CodeNotFound, "replayed or discarded, or has expired")
}

func TestReplayOfMissingObjectIsReported(t *testing.T) {
	b := newQueryEnv(t)
	_, err := b.Replay(t.Context(), ref("none"))
	expectRefused(t, err, connect.CodeNotFound, "does not exist, and nothing was published about it")
	_, err = b.Replay(t.Context(), letter(b.letter(topology.StoreSync, topology.ResyncSubject(topology.StoreSync), nil)))
	expectRefused(t, err, connect.CodeInvalidArgument, "names no object")
	for _, r := range []*eventv1.ObjectRef{
		{}, {Resource: "stores"}, {Group: "other", Resource: "stores", Name: "x"}, {Cluster: "other", Group: kinds.Stores().Group, Resource: "stores", Name: "x"},
	} {
		_, err := b.Replay(t.Context(), &syncv1.ReplayRequest{What: &syncv1.ReplayRequest_Ref{Ref: r}})
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("replay of %v: %v, want it refused", r, err)
		}
	}
}

func TestReplayRequiresAPIServer(t *testing.T) {
	b := newQueryEnv(t)
	ack := b.exists(state("x", 10))
	b.cluster.err = errors.New("connection refused")
	if _, err := b.Replay(t.Context(), ref("x")); err == nil {
		t.Error("replayed without knowing the present state")
	}
	if last, err := b.cfg.Publisher.LastChange(t.Context(), key("x")); err != nil || last.Sequence != ack.Sequence {
		t.Errorf("on the bus is %+v, %v", last.Entry, err)
	}
}
