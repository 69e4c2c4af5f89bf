package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Marker publishes a snapshot marker.
func (p *Publisher) Marker(ctx context.Context, m *eventv1.SnapshotMarker) error {
	resource := event.GroupResource{Group: m.GetGroup(), Resource: m.GetResource()}
	data, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode snapshot marker of %s: %w", resource, err)
	}
	if _, err := p.js.Publish(ctx, topology.SyncSubject(m.GetCluster(), resource), data); err != nil {
		return fault.Unavailable(fmt.Errorf("publish snapshot marker of %s: %w", resource, err))
	}
	return nil
}

// Heartbeat publishes a heartbeat.
func (p *Publisher) Heartbeat(ctx context.Context, h *eventv1.Heartbeat) error {
	data, err := proto.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode heartbeat: %w", err)
	}
	if _, err := p.js.Publish(ctx, topology.HeartbeatSubject(h.GetCluster()), data); err != nil {
		return fault.Unavailable(fmt.Errorf("publish heartbeat: %w", err))
	}
	return nil
}

// LastMarker reads the newest snapshot marker of a resource. [ErrNone] and [ErrMalformed]
// tell of an absent and of an unusable one.
func (p *Publisher) LastMarker(ctx context.Context, cluster string, r event.GroupResource) (*eventv1.SnapshotMarker, error) {
	stream, err := p.led(ctx, topology.Sync)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("open stream %s: %w", topology.Sync, ErrNone)
	}
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	msg, err := stream.GetLastMsgForSubject(ctx, topology.SyncSubject(cluster, r))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("read snapshot marker of %s: %w", r, ErrNone)
	}
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("read snapshot marker of %s: %w", r, err))
	}
	var m eventv1.SnapshotMarker
	if err := proto.Unmarshal(msg.Data, &m); err != nil {
		return nil, fmt.Errorf("snapshot marker of %s: %w: %w", r, ErrMalformed, err)
	}
	return &m, nil
}

// Unmark takes a resource's snapshot marker back: the stream is not complete any more.
func (p *Publisher) Unmark(ctx context.Context, cluster string, r event.GroupResource) error {
	stream, err := p.js.Stream(ctx, topology.Sync)
	if err != nil {
		return fault.Unavailable(fmt.Errorf("open stream %s: %w", topology.Sync, err))
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(topology.SyncSubject(cluster, r))); err != nil {
		return fault.Unavailable(fmt.Errorf("take back snapshot marker of %s: %w", r, err))
	}
	return nil
}
