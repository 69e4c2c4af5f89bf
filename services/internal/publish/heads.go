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

// headsStall bounds the time without progress of a read. headsHeartbeat is shorter, so that the client asks a silent
// server again before.
const (
	headsStall     = 5 * time.Second
	headsHeartbeat = time.Second
)

// Heads reads the headers of everything that the stream holds of one resource, tombstones included: all that the leader
// of the stream holds when the read begins, whichever replica delivers it. It skips subjects that name no object. An
// error ends it.
func (p *Publisher) Heads(ctx context.Context, cluster string, r event.GroupResource) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := p.forEachHead(ctx, topology.HeadsFilter(cluster, r), yield); err != nil {
			yield(Entry{}, fmt.Errorf("read what %s holds of %s: %w", topology.Changes, r, err))
		}
	}
}

// HeadsIn reads the same as [Publisher.Heads] in one namespace.
func (p *Publisher) HeadsIn(ctx context.Context, cluster string, r event.GroupResource, namespace string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := p.forEachHead(ctx, topology.HeadsFilterIn(cluster, r, namespace), yield); err != nil {
			yield(Entry{}, fmt.Errorf("read what %s holds of %s in %s: %w", topology.Changes, r, namespace, err))
		}
	}
}

func (p *Publisher) forEachHead(ctx context.Context, filter string, yield func(Entry, error) bool) error {
	newest, err := p.newestSequence(ctx, filter)
	if err != nil || newest == 0 {
		return err
	}
	consumer, err := p.js.OrderedConsumer(ctx, topology.Changes, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{filter}, DeliverPolicy: jetstream.DeliverAllPolicy, HeadersOnly: true,
		InactiveThreshold: 2 * headsStall,
	})
	if err != nil {
		return err
	}
	defer p.deleteConsumer(ctx, consumer)
	messages, err := consumer.Messages(jetstream.PullHeartbeat(headsHeartbeat))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		at, goOn, err := nextHead(ctx, messages, yield)
		if err != nil || !goOn || at.NumPending == 0 && at.Sequence.Stream >= newest {
			return err
		}
	}
}

// newestSequence returns the last sequence that matches a filter, from the leader of the stream; 0 if there is none.
func (p *Publisher) newestSequence(ctx context.Context, filter string) (uint64, error) {
	stream, err := p.openAtLeader(ctx, topology.Changes)
	if err != nil {
		return 0, err
	}
	msg, err := stream.GetLastMsgForSubject(ctx, filter)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look up the newest: %w", err)
	}
	return msg.Sequence, nil
}

// deleteConsumer deletes an ephemeral consumer at once. The number of consumers of a stream is limited, and the server would
// keep it until it has been inactive for a while.
func (p *Publisher) deleteConsumer(ctx context.Context, consumer jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = p.js.DeleteConsumer(ctx, topology.Changes, consumer.CachedInfo().Name) // On error the server deletes it later.
}

func nextHead(ctx context.Context, messages jetstream.MessagesContext, yield func(Entry, error) bool) (*jetstream.MsgMetadata, bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, headsStall, errStalled)
	defer cancel()
	msg, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return nil, false, errors.Join(err, context.Cause(ctx))
	}
	meta, err := msg.Metadata()
	if err != nil {
		return nil, false, err
	}
	key, _, err := topology.ParseChangeSubject(msg.Subject())
	if err != nil {
		return meta, true, nil
	}
	return meta, yield(headOf(key, meta.Sequence.Stream, msg.Headers()), nil), nil
}

var errStalled = errors.New("the stream stopped sending")

// First returns the oldest message of one resource, or [ErrNone].
func (p *Publisher) First(ctx context.Context, cluster string, r event.GroupResource) (Entry, error) {
	stream, err := p.openAtLeader(ctx, topology.Changes)
	if err != nil {
		return Entry{}, err
	}
	msg, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(topology.HeadsFilter(cluster, r)))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Entry{}, fmt.Errorf("read a change of %s: %w", r, ErrNone)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("read a change of %s: %w", r, err)
	}
	key, _, err := topology.ParseChangeSubject(msg.Subject)
	if err != nil {
		return Entry{}, fmt.Errorf("sequence %d: %w: %w", msg.Sequence, ErrMalformed, err)
	}
	return headOf(key, msg.Sequence, msg.Header), nil
}
