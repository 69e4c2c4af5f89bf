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

// readStall bounds the time without a message during a read. readHeartbeat is shorter, so that the client first
// requests the messages again.
const (
	readStall     = 5 * time.Second
	readHeartbeat = time.Second
)

// ReadAll yields all messages of one resource, including deletions. It covers everything that the stream's leader held
// when the read began. It skips invalid subjects and every [topology.TombstoneSubject].
//
// Without bodies, it reads only headers, and Change is empty. It ends after an error.
func (p *Publisher) ReadAll(ctx context.Context, cluster string, r event.GroupResource, bodies bool) iter.Seq2[StoredMessage, error] {
	return func(yield func(StoredMessage, error) bool) {
		if err := p.readFiltered(ctx, topology.CurrentStatesFilter(cluster, r), bodies, yield); err != nil {
			yield(StoredMessage{}, fmt.Errorf("read the messages of %s about %s: %w", topology.Changes, r, err))
		}
	}
}

// ReadAllInNamespace yields the same as [Publisher.ReadAll], for one namespace.
func (p *Publisher) ReadAllInNamespace(ctx context.Context, cluster string, r event.GroupResource, namespace string,
	bodies bool,
) iter.Seq2[StoredMessage, error] {
	return func(yield func(StoredMessage, error) bool) {
		if err := p.readFiltered(ctx, topology.CurrentStatesFilterIn(cluster, r, namespace), bodies, yield); err != nil {
			yield(StoredMessage{}, fmt.Errorf("read the messages of %s about %s in %s: %w", topology.Changes, r, namespace, err))
		}
	}
}

// ReadTombstones yields the messages with a [topology.TombstoneSubject] of one resource, without bodies.
func (p *Publisher) ReadTombstones(ctx context.Context, cluster string, r event.GroupResource) iter.Seq2[StoredMessage, error] {
	return func(yield func(StoredMessage, error) bool) {
		if err := p.readFiltered(ctx, topology.TombstonesFilter(cluster, r), false, yield); err != nil {
			yield(StoredMessage{}, fmt.Errorf("read the tombstones of %s in %s: %w", r, topology.Changes, err))
		}
	}
}

func (p *Publisher) readFiltered(ctx context.Context, filter string, bodies bool, yield func(StoredMessage, error) bool) error {
	newest, err := p.newestSequence(ctx, filter)
	if err != nil || newest == 0 {
		return err
	}
	consumer, err := p.js.OrderedConsumer(ctx, topology.Changes, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{filter}, DeliverPolicy: jetstream.DeliverAllPolicy, HeadersOnly: !bodies,
		InactiveThreshold: 2 * readStall, MaxResetAttempts: 1, // Resets do not end with ctx.
	})
	if err != nil {
		return err
	}
	defer p.deleteConsumer(ctx, consumer)
	messages, err := consumer.Messages(jetstream.PullHeartbeat(readHeartbeat))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		at, goOn, err := yieldNextMessage(ctx, messages, bodies, yield)
		if err != nil || !goOn || at.NumPending == 0 && at.Sequence.Stream >= newest {
			return err
		}
	}
}

// newestSequence returns the last sequence that matches a filter; 0 if there is none. The stream's leader answers.
func (p *Publisher) newestSequence(ctx context.Context, filter string) (uint64, error) {
	stream, err := p.openStreamAtLeader(ctx, topology.Changes)
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

// deleteConsumer deletes an ephemeral consumer at once. The server limits the consumers of a stream and would keep an
// inactive one for a while.
func (p *Publisher) deleteConsumer(ctx context.Context, consumer jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = p.js.DeleteConsumer(ctx, topology.Changes, consumer.CachedInfo().Name) // On error the server deletes it later.
}

func yieldNextMessage(ctx context.Context, messages jetstream.MessagesContext, bodies bool,
	yield func(StoredMessage, error) bool,
) (*jetstream.MsgMetadata, bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readStall, errStalled)
	defer cancel()
	msg, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return nil, false, errors.Join(err, context.Cause(ctx))
	}
	meta, err := msg.Metadata()
	if err != nil {
		return nil, false, err
	}
	key, _, err := topology.ParseChangeOrTombstoneSubject(msg.Subject())
	if err != nil {
		return meta, true, nil
	}
	stored := StoredMessage{Entry: entryOf(key, meta.Sequence.Stream, msg.Headers()), PublishedAt: meta.Timestamp}
	if !bodies {
		return meta, yield(stored, nil), nil
	}
	stored.Change, stored.Refused = topology.DecodeRawChange(msg.Subject(), msg.Headers(), msg.Data())
	return meta, yield(stored, nil), nil
}

var errStalled = errors.New("the stream stopped sending")

// ReadOldestEntry returns the oldest message of one resource, or [ErrNoMessage].
func (p *Publisher) ReadOldestEntry(ctx context.Context, cluster string, r event.GroupResource) (Entry, error) {
	stream, err := p.openStreamAtLeader(ctx, topology.Changes)
	if err != nil {
		return Entry{}, err
	}
	msg, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(topology.CurrentStatesFilter(cluster, r)))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Entry{}, fmt.Errorf("read a change of %s: %w", r, ErrNoMessage)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("read a change of %s: %w", r, err)
	}
	key, _, err := topology.ParseChangeOrTombstoneSubject(msg.Subject)
	if err != nil {
		return Entry{}, fmt.Errorf("sequence %d: %w: %w", msg.Sequence, ErrMalformed, err)
	}
	return entryOf(key, msg.Sequence, msg.Header), nil
}
