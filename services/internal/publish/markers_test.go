package publish

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestLastMarkerReturnsMarkerUntilDeleted(t *testing.T) {
	p := New(bus(t, 0))
	stores, models := kinds.Stores().GroupResource, kinds.AuthorizationModels().GroupResource
	for _, r := range []string{stores.Resource, models.Resource} {
		for count := range int64(2) {
			if err := p.PublishMarker(t.Context(), &eventv1.SnapshotMarker{Cluster: "local", Group: stores.Group, Resource: r, Count: count}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m, err := p.LastMarker(t.Context(), "local", stores); err != nil || m.GetCount() != 1 {
		t.Errorf("marker is %v, %v; want the newest", m, err)
	}
	if err := p.DeleteMarker(t.Context(), "local", stores); err != nil {
		t.Fatal(err)
	}
	if m, err := p.LastMarker(t.Context(), "local", stores); !errors.Is(err, ErrNoMessage) {
		t.Errorf("marker is %v, %v; want ErrNone", m, err)
	}
	if m, err := p.LastMarker(t.Context(), "local", models); err != nil || m == nil {
		t.Errorf("marker of another resource is %v, %v; want it untouched", m, err)
	}
	if _, err := p.js.Publish(t.Context(), topology.MarkerSubject("local", stores), []byte("not protobuf")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.LastMarker(t.Context(), "local", stores); !errors.Is(err, ErrMalformed) {
		t.Errorf("error is %v, want ErrMalformed", err)
	}
	if err := p.js.DeleteStream(t.Context(), topology.Sync); err != nil {
		t.Fatal(err)
	}
	if _, err := p.LastMarker(t.Context(), "local", models); !errors.Is(err, ErrNoMessage) {
		t.Errorf("error without a stream is %v, want ErrNone", err)
	}
}

func TestRecreatedStreamHasOtherID(t *testing.T) {
	js := bus(t, 0)
	before := streamIDOf(t, js)
	if err := stream(t, js).Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if purged := streamIDOf(t, js); purged != before {
		t.Errorf("a purge makes %s with stream ID %s", purged, before)
	}
	if err := js.DeleteStream(t.Context(), topology.Changes); err != nil {
		t.Fatal(err)
	}
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	if after := streamIDOf(t, js); after == before {
		t.Errorf("the stream ID is still %s", after)
	}
	if _, err := time.Parse(time.RFC3339Nano, before); err != nil {
		t.Error(err)
	}
}

func streamIDOf(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	info, err := stream(t, js).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return topology.StreamID(info)
}
