// Package trail reads the progress of changes from NATS: the results of each service for an object, and the position of
// each service on the stream. It also reads and discards dead letters.
package trail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

// StreamReader reads the streams.
type StreamReader struct {
	js jetstream.JetStream
}

// New returns a reader of the streams.
func New(js jetstream.JetStream) *StreamReader { return &StreamReader{js: js} }

// LatestResults lists the newest result for an object of each service that published one.
func (t *StreamReader) LatestResults(ctx context.Context, k event.Key) ([]*eventv1.ResourceResult, error) {
	stream, err := t.openStream(ctx, topology.Results)
	if err != nil {
		return nil, err
	}
	var results []*eventv1.ResourceResult
	for _, service := range topology.DurableServices() {
		msg, err := stream.GetLastMsgForSubject(ctx, topology.ResultSubject(service.Name, k))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return nil, fault.Unavailable(fmt.Errorf("read the result of %s for %s: %w", service.Name, k, err))
		}
		var result eventv1.ResourceResult
		if err := proto.Unmarshal(msg.Data, &result); err != nil {
			return nil, fmt.Errorf("decode the result of %s for %s: %w", service.Name, k, err)
		}
		results = append(results, &result)
	}
	return results, nil
}

// ServiceProgress is the position of one service on the stream.
type ServiceProgress struct {
	Service string
	// Pending messages are not delivered yet. InFlight messages are in work or wait for a retry.
	Pending, InFlight, Redelivered uint64
	LastAckAt                      time.Time
	Letters                        uint64
}

// StreamState is the state of the stream of changes.
type StreamState struct {
	// Objects counts the objects and recent deletions on the stream.
	Objects      uint64
	LastSequence uint64
	Incarnation  string
}

// ChangesStreamState returns the state of the stream of changes.
func (t *StreamReader) ChangesStreamState(ctx context.Context) (StreamState, error) {
	stream, err := t.openStream(ctx, topology.Changes)
	if err != nil {
		return StreamState{}, err
	}
	var bus StreamState
	for _, other := range []string{topology.ResyncSubject("*"), topology.BarrierSubject("")} {
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(other))
		if err != nil {
			return StreamState{}, fault.Unavailable(fmt.Errorf("inspect stream %s: %w", topology.Changes, err))
		}
		if bus.Incarnation == "" {
			bus = StreamState{Objects: info.State.NumSubjects, LastSequence: info.State.LastSeq, Incarnation: topology.StreamID(info)}
		}
		bus.Objects -= min(bus.Objects, uint64(len(info.State.Subjects)))
	}
	return bus, nil
}

// ListServiceProgress returns the position of every service. For a service that never started, all objects of its kinds
// are pending. A service without kinds on the stream, such as without OpenSearch, has none.
func (t *StreamReader) ListServiceProgress(ctx context.Context) ([]ServiceProgress, error) {
	letters, err := t.openStream(ctx, topology.DeadLetters)
	if err != nil {
		return nil, err
	}
	var all []ServiceProgress
	for _, service := range topology.DurableServices() {
		p := ServiceProgress{Service: service.Name}
		if err := t.fillConsumerProgress(ctx, service, &p); err != nil {
			return nil, err
		}
		info, err := letters.Info(ctx, jetstream.WithSubjectFilter(topology.DeadLettersFilter(service.Name)))
		if err != nil {
			return nil, fault.Unavailable(fmt.Errorf("count dead letters of %s: %w", service.Name, err))
		}
		for _, count := range info.State.Subjects {
			p.Letters += count
		}
		all = append(all, p)
	}
	return all, nil
}

func (t *StreamReader) fillConsumerProgress(ctx context.Context, service topology.Service, p *ServiceProgress) error {
	consumer, err := t.js.Consumer(ctx, topology.Changes, service.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		p.Pending, err = t.countObjects(ctx, service.Kinds)
		return err
	}
	if err != nil {
		return fault.Unavailable(fmt.Errorf("inspect durable %s: %w", service.Name, err))
	}
	info := consumer.CachedInfo()
	p.Pending, p.InFlight, p.Redelivered = info.NumPending, uint64(info.NumAckPending), uint64(info.NumRedelivered)
	if info.AckFloor.Last != nil {
		p.LastAckAt = *info.AckFloor.Last
	}
	return nil
}

// countObjects counts the objects and recent deletions of some kinds.
func (t *StreamReader) countObjects(ctx context.Context, of []event.GroupResource) (uint64, error) {
	stream, err := t.openStream(ctx, topology.Changes)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, kind := range of {
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(topology.ChangesFilter("", kind)))
		if err != nil {
			return 0, fault.Unavailable(fmt.Errorf("count %s on stream %s: %w", kind, topology.Changes, err))
		}
		count += len(info.State.Subjects)
	}
	return uint64(count), nil
}

func (t *StreamReader) openStream(ctx context.Context, name string) (jetstream.Stream, error) {
	stream, err := t.js.Stream(ctx, name)
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("open stream %s: %w", name, err))
	}
	return stream, nil
}
