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
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

// PublishMarker publishes a snapshot marker.
func (p *Publisher) PublishMarker(ctx context.Context, m *eventv1.SnapshotMarker) error {
	resource := event.GroupResource{Group: m.GetGroup(), Resource: m.GetResource(), Target: m.GetTarget()}
	data, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode snapshot marker of %s: %w", resource, err)
	}
	if _, err := p.js.Publish(ctx, topology.MarkerSubject(m.GetCluster(), resource), data); err != nil {
		return fault.Unavailable(fmt.Errorf("publish snapshot marker of %s: %w", resource, err))
	}
	return nil
}

// LastMarker returns the newest snapshot marker of a resource. The error is [ErrNoMessage] if there is none, and
// [ErrMalformed] if it cannot be decoded.
func (p *Publisher) LastMarker(ctx context.Context, cluster string, r event.GroupResource) (*eventv1.SnapshotMarker, error) {
	stream, err := p.openStreamAtLeader(ctx, topology.Sync)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("open stream %s: %w", topology.Sync, ErrNoMessage)
	}
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	msg, err := stream.GetLastMsgForSubject(ctx, topology.MarkerSubject(cluster, r))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("read snapshot marker of %s: %w", r, ErrNoMessage)
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

// DeleteMarker deletes the snapshot marker of a resource. Call it when the stream may no longer hold all objects.
func (p *Publisher) DeleteMarker(ctx context.Context, cluster string, r event.GroupResource) error {
	stream, err := p.js.Stream(ctx, topology.Sync)
	if err != nil {
		return fault.Unavailable(fmt.Errorf("open stream %s: %w", topology.Sync, err))
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(topology.MarkerSubject(cluster, r))); err != nil {
		return fault.Unavailable(fmt.Errorf("delete snapshot marker of %s: %w", r, err))
	}
	return nil
}

// MarkedTargetKinds lists the target kinds that have a snapshot marker which was not withdrawn.
func (p *Publisher) MarkedTargetKinds(ctx context.Context, cluster string) ([]event.GroupResource, error) {
	stream, err := p.js.Stream(ctx, topology.Sync)
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("open stream %s: %w", topology.Sync, err))
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(topology.MarkerSubject(cluster, kinds.AllTargets())))
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("list markers of targets: %w", err))
	}
	var marked []event.GroupResource
	for subject := range info.State.Subjects {
		of, err := topology.ParseTargetMarkerSubject(subject)
		if err != nil {
			continue
		}
		switch m, err := p.LastMarker(ctx, cluster, of); {
		case errors.Is(err, ErrNoMessage), err == nil && m.GetWithdrawn():
		case err != nil && !errors.Is(err, ErrMalformed):
			return nil, err
		default:
			marked = append(marked, of)
		}
	}
	return marked, nil
}

// PurgeTargetKind removes all messages of a target kind from the stream. It returns the last sequence of the stream
// after the purge.
func (p *Publisher) PurgeTargetKind(ctx context.Context, cluster string, of event.GroupResource) (last uint64, err error) {
	stream, err := p.js.Stream(ctx, topology.Changes)
	if err != nil {
		return 0, fault.Unavailable(fmt.Errorf("open stream %s: %w", topology.Changes, err))
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(topology.ChangesFilter(cluster, of))); err != nil {
		return 0, fault.Unavailable(fmt.Errorf("remove %s from the stream: %w", of, err))
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, fault.Unavailable(fmt.Errorf("look up stream %s: %w", topology.Changes, err))
	}
	return info.State.LastSeq, nil
}
