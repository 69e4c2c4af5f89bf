package publish

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestAMarkerReadsBackUntilItIsTakenBack(t *testing.T) {
	p := New(bus(t, 0))
	stores, models := kinds.Stores().GroupResource, kinds.AuthorizationModels().GroupResource
	for _, r := range []string{stores.Resource, models.Resource} {
		for count := range int64(2) {
			if err := p.Marker(t.Context(), &eventv1.SnapshotMarker{Cluster: "local", Group: stores.Group, Resource: r, Count: count}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m, err := p.LastMarker(t.Context(), "local", stores); err != nil || m.GetCount() != 1 {
		t.Errorf("marker is %v, %v; want the newest", m, err)
	}
	if err := p.Unmark(t.Context(), "local", stores); err != nil {
		t.Fatal(err)
	}
	if m, err := p.LastMarker(t.Context(), "local", stores); !errors.Is(err, ErrNone) {
		t.Errorf("marker is %v, %v; want ErrNone", m, err)
	}
	if m, err := p.LastMarker(t.Context(), "local", models); err != nil || m == nil {
		t.Errorf("marker of another resource is %v, %v; want it untouched", m, err)
	}
	if _, err := p.js.Publish(t.Context(), topology.SyncSubject("local", stores), []byte("not protobuf")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.LastMarker(t.Context(), "local", stores); !errors.Is(err, ErrMalformed) {
		t.Errorf("error is %v, want ErrMalformed", err)
	}
	if err := p.js.DeleteStream(t.Context(), topology.Sync); err != nil {
		t.Fatal(err)
	}
	if _, err := p.LastMarker(t.Context(), "local", models); !errors.Is(err, ErrNone) {
		t.Errorf("error without a stream is %v, want ErrNone", err)
	}
}

func TestAStreamMadeAgainHasAnotherIncarnation(t *testing.T) {
	js := bus(t, 0)
	before := incarnation(t, js)
	if err := stream(t, js).Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if purged := incarnation(t, js); purged != before {
		t.Errorf("a purge makes %s of incarnation %s", purged, before)
	}
	if err := js.DeleteStream(t.Context(), topology.Changes); err != nil {
		t.Fatal(err)
	}
	if err := topology.Ensure(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	if after := incarnation(t, js); after == before {
		t.Errorf("incarnation is still %s", after)
	}
	if _, err := time.Parse(time.RFC3339Nano, before); err != nil {
		t.Error(err)
	}
}

func incarnation(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	info, err := stream(t, js).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return topology.Incarnation(info)
}

func TestALongAnnouncementIsSeveral(t *testing.T) {
	js := bus(t, 0)
	var objects []string
	for i := range 2*objectsPerAnnouncement + 1 {
		objects = append(objects, fmt.Sprint("doc:", i))
	}
	a := NewAnnouncer(js, slog.New(slog.DiscardHandler))
	a.Announce(&eventv1.StoreChanged{StoreId: "01", Objects: objects})
	a.Announce(&eventv1.StoreChanged{StoreId: "01", AuthorizationModelId: "m"})
	a.Flush()
	s, err := js.Stream(t.Context(), topology.Announce)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for sequence, model := range []string{"", "", "", "m"} {
		msg, err := s.GetMsg(t.Context(), uint64(sequence)+1)
		if err != nil {
			t.Fatal(err)
		}
		var m eventv1.StoreChanged
		if err := proto.Unmarshal(msg.Data, &m); err != nil {
			t.Fatal(err)
		}
		if m.GetStoreId() != "01" || m.GetAuthorizationModelId() != model {
			t.Errorf("message %d is %v", sequence, &m)
		}
		got = append(got, m.GetObjects()...)
	}
	if !slices.Equal(got, objects) {
		t.Errorf("announced %d objects, want all %d in order", len(got), len(objects))
	}
}
