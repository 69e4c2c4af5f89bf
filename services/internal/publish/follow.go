package publish

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/topology"
)

// SetOnAck sets the function that is called with the sequence of each change that the stream acknowledges. There is
// only one such function; nil removes it.
func (p *Publisher) SetOnAck(f func(sequence uint64)) {
	p.onAck.Store(&f)
}

// notifyAcknowledged calls the function that [Publisher.SetOnAck] has set.
func (p *Publisher) notifyAcknowledged(sequence uint64) {
	if f := p.onAck.Load(); f != nil && *f != nil {
		(*f)(sequence)
	}
}

// LastSequence returns the last sequence of the stream of changes.
func (p *Publisher) LastSequence(ctx context.Context) (uint64, error) {
	stream, err := p.js.Stream(ctx, topology.Changes)
	if err != nil {
		return 0, fmt.Errorf("look up stream %s: %w", topology.Changes, err)
	}
	return stream.CachedInfo().State.LastSeq, nil
}

// FollowChanges calls take with the subject and sequence of every change of a cluster after the given sequence, until
// an error. It reads no bodies.
func (p *Publisher) FollowChanges(ctx context.Context, cluster string, after uint64, onChange func(subject string, sequence uint64)) error {
	consumer, err := p.js.OrderedConsumer(ctx, topology.Changes, jetstream.OrderedConsumerConfig{
		FilterSubjects: topology.ClusterFilters(cluster), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
		HeadersOnly: true, InactiveThreshold: 2 * readStall, MaxResetAttempts: 1,
	})
	if err != nil {
		return fmt.Errorf("follow stream %s: %w", topology.Changes, err)
	}
	defer p.deleteConsumer(ctx, consumer)
	messages, err := consumer.Messages(jetstream.PullHeartbeat(readHeartbeat))
	if err != nil {
		return fmt.Errorf("follow stream %s: %w", topology.Changes, err)
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("follow stream %s: %w", topology.Changes, err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("follow stream %s: %w", topology.Changes, err)
		}
		onChange(msg.Subject(), meta.Sequence.Stream)
	}
}
