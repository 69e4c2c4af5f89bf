package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

var (
	errDisconnected = errors.New("no connection to NATS")
	errUnproven     = errors.New("the connection to NATS was lost since the last change")
)

// PublishBarrier publishes a barrier and returns its sequence. The stream accepts it only if the last barrier has the
// expected sequence; otherwise the error is [ErrUnexpectedBarrier].
//
// PublishBarrier sends nothing without a connection, because the NATS client would send the barrier later. It sends
// nothing while [Publisher.MayHaveLostMessages] returns true.
func (p *Publisher) PublishBarrier(ctx context.Context, b *eventv1.Barrier, expectedSequence uint64) (sequence uint64, err error) {
	data, err := proto.Marshal(b)
	if err != nil {
		return 0, fmt.Errorf("encode barrier: %w", err)
	}
	connection, before := p.connectionNumber(), p.connectionWithoutBarrier.Swap(0)
	switch {
	case before > 0 && before <= connection:
		err = errUnproven
	case !p.js.Conn().IsConnected():
		err = errDisconnected
	default:
		sequence, err = p.sendBarrier(ctx, b.GetCluster(), data, expectedSequence)
	}
	if before > 0 && (err != nil || p.connectionNumber() != connection) {
		p.recordMessageWithoutBarrier(before - 1)
	}
	if err != nil && !errors.Is(err, ErrUnexpectedBarrier) {
		err = fault.Unavailable(err)
	}
	if err != nil {
		return 0, fmt.Errorf("publish barrier: %w", err)
	}
	return sequence, nil
}

func (p *Publisher) sendBarrier(ctx context.Context, cluster string, data []byte, expected uint64) (sequence uint64, err error) {
	connection := p.connectionNumber()
	ack, err := p.js.Publish(ctx, topology.BarrierSubject(cluster), data, jetstream.WithExpectLastSequencePerSubject(expected))
	switch {
	case err == nil:
		return ack.Sequence, nil
	case topology.IsSequenceConflict(err):
		return 0, ErrUnexpectedBarrier
	}
	// The stream may have stored the barrier without an answer, and may lose it again.
	p.recordMessageWithoutBarrier(connection)
	return 0, fmt.Errorf("wait for the acknowledgement: %w", err)
}

// PublishHaltBarrier publishes a barrier that only announces a halt, and returns its sequence. It may follow
// any barrier.
func (p *Publisher) PublishHaltBarrier(ctx context.Context, b *eventv1.Barrier) (sequence uint64, err error) {
	data, err := proto.Marshal(b)
	if err != nil {
		return 0, fmt.Errorf("encode barrier: %w", err)
	}
	ack, err := p.js.Publish(ctx, topology.BarrierSubject(b.GetCluster()), data)
	if err != nil {
		return 0, fault.Unavailable(fmt.Errorf("publish the halt: %w", err))
	}
	return ack.Sequence, nil
}

// recordMessageWithoutBarrier records that the stream stored a message over a connection and that no barrier has
// followed the message.
func (p *Publisher) recordMessageWithoutBarrier(connection uint64) {
	for {
		oldest := p.connectionWithoutBarrier.Load()
		if oldest > 0 && oldest <= connection+1 || p.connectionWithoutBarrier.CompareAndSwap(oldest, connection+1) {
			return
		}
	}
}

// MayHaveLostMessages reports whether the stream may have lost acknowledged messages. It returns true if the
// connection was lost after an acknowledgement and before the next barrier: the server may have restarted without its
// last writes.
//
// The next barrier would not detect the loss, because it only expects the last barrier.
func (p *Publisher) MayHaveLostMessages() bool {
	uncovered := p.connectionWithoutBarrier.Load()
	return uncovered > 0 && uncovered <= p.connectionNumber()
}

// ResetLostMessages makes [Publisher.MayHaveLostMessages] return false. The caller must compare the stream with the API
// server from now on.
func (p *Publisher) ResetLostMessages() { p.connectionWithoutBarrier.Store(0) }

// connectionNumber returns the number of the present connection to NATS. Each reconnect increases it.
func (p *Publisher) connectionNumber() uint64 { return p.js.Conn().Stats().Reconnects }

// LastBarrier returns the newest barrier of a cluster and its sequence. The error is [ErrNoMessage] if there is none.
// It is [ErrMalformed] if the barrier cannot be decoded; sequence is valid in this case.
func (p *Publisher) LastBarrier(ctx context.Context, cluster string) (b *eventv1.Barrier, sequence uint64, err error) {
	stream, err := p.openStreamAtLeader(ctx, topology.Changes)
	if err != nil {
		return nil, 0, fault.Unavailable(err)
	}
	msg, err := stream.GetLastMsgForSubject(ctx, topology.BarrierSubject(cluster))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, 0, fmt.Errorf("read the last barrier: %w", ErrNoMessage)
	}
	if err != nil {
		return nil, 0, fault.Unavailable(fmt.Errorf("read the last barrier: %w", err))
	}
	b = &eventv1.Barrier{}
	if err := proto.Unmarshal(msg.Data, b); err != nil {
		return nil, msg.Sequence, fmt.Errorf("read the last barrier: %w: %w", ErrMalformed, err)
	}
	return b, msg.Sequence, nil
}
