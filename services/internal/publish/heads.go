package publish

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// headsStall is how long a read may make no progress before it fails.
const headsStall = 5 * time.Second

// Heads reads what the stream now holds of one resource, deletions included, without
// the bodies. Messages on subjects that name no object are passed over. An error ends it.
func (p *Publisher) Heads(ctx context.Context, cluster string, r event.GroupResource) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		if err := p.heads(ctx, cluster, r, yield); err != nil {
			yield(Head{}, fmt.Errorf("read what %s holds of %s: %w", topology.Changes, r, err))
		}
	}
}

func (p *Publisher) heads(ctx context.Context, cluster string, r event.GroupResource, yield func(Head, error) bool) error {
	consumer, err := p.js.OrderedConsumer(ctx, topology.Changes, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{topology.ChangesFilter(cluster, r)},
		DeliverPolicy:  jetstream.DeliverAllPolicy, HeadersOnly: true,
		InactiveThreshold: 2 * headsStall,
	})
	if err != nil {
		return err
	}
	defer p.forget(ctx, consumer)
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		pending, goOn, err := nextHead(ctx, messages, yield)
		if err != nil || !goOn || pending == 0 {
			return err
		}
	}
}

// forget takes an ephemeral consumer away now: a server allows a stream only so many,
// and would keep it until it has been inactive for a while.
func (p *Publisher) forget(ctx context.Context, consumer jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = p.js.DeleteConsumer(ctx, topology.Changes, consumer.CachedInfo().Name) // Then it goes later.
}

func nextHead(ctx context.Context, messages jetstream.MessagesContext, yield func(Head, error) bool) (uint64, bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, headsStall, errStalled)
	defer cancel()
	msg, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return 0, false, errors.Join(err, context.Cause(ctx))
	}
	meta, err := msg.Metadata()
	if err != nil {
		return 0, false, err
	}
	key, err := topology.ParseChangeSubject(msg.Subject())
	if err != nil {
		return meta.NumPending, true, nil
	}
	return meta.NumPending, yield(headOf(key, meta.Sequence.Stream, msg.Headers()), nil), nil
}

var errStalled = errors.New("the stream stopped sending")

// First tells the oldest message of one resource; [ErrNone] when there is none.
func (p *Publisher) First(ctx context.Context, cluster string, r event.GroupResource) (Head, error) {
	stream, err := p.js.Stream(ctx, topology.Changes)
	if err != nil {
		return Head{}, fmt.Errorf("open stream %s: %w", topology.Changes, err)
	}
	msg, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(topology.ChangesFilter(cluster, r)))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Head{}, fmt.Errorf("read a change of %s: %w", r, ErrNone)
	}
	if err != nil {
		return Head{}, fmt.Errorf("read a change of %s: %w", r, err)
	}
	key, err := topology.ParseChangeSubject(msg.Subject)
	if err != nil {
		return Head{}, fmt.Errorf("sequence %d: %w: %w", msg.Sequence, ErrMalformed, err)
	}
	return headOf(key, msg.Sequence, msg.Header), nil
}
