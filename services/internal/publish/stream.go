package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

// StreamID returns the creation time of the stream of changes, or [ErrNoMessage] if there is no stream.
func (p *Publisher) StreamID(ctx context.Context) (string, error) {
	stream, err := p.js.Stream(ctx, topology.Changes)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return "", fmt.Errorf("open stream %s: %w", topology.Changes, ErrNoMessage)
	}
	if err != nil {
		return "", fault.Unavailable(fmt.Errorf("open stream %s: %w", topology.Changes, err))
	}
	return topology.StreamID(stream.CachedInfo()), nil
}

// CompareStreams lists the differences between the streams and their definitions in package topology.
func (p *Publisher) CompareStreams(ctx context.Context, replicas int) ([]topology.StreamDifference, error) {
	return topology.CompareStreams(ctx, p.js, replicas)
}

// RepairStream changes a stream back to its definition.
func (p *Publisher) RepairStream(ctx context.Context, d topology.StreamDifference) error {
	return topology.RepairStream(ctx, p.js, d)
}

// StoredMessage is a message in the stream.
type StoredMessage struct {
	Entry
	Change event.Change
	// PublishedAt is the time at which the stream stored the message.
	PublishedAt time.Time
	// Refused is the error of [topology.DecodeRawChange]. If it is set, Change is empty, and only Key and Sequence are
	// reliable.
	Refused error
}

// LastChange returns the newest message of k. The error is [ErrNoMessage] if there is none. It is [ErrMalformed] if the
// message cannot be decoded; Sequence is valid in this case.
func (p *Publisher) LastChange(ctx context.Context, k event.Key) (StoredMessage, error) {
	return p.readLastMessage(ctx, topology.ChangeSubject(k), k)
}

func (p *Publisher) readLastMessage(ctx context.Context, subject string, k event.Key) (StoredMessage, error) {
	stream, err := p.openStreamAtLeader(ctx, topology.Changes)
	if err != nil {
		return StoredMessage{}, fault.Unavailable(err)
	}
	msg, err := stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return StoredMessage{}, fmt.Errorf("read last change of %s: %w", k, ErrNoMessage)
	}
	if err != nil {
		return StoredMessage{}, fault.Unavailable(fmt.Errorf("read last change of %s: %w", k, err))
	}
	stored := StoredMessage{Entry: entryOf(k, msg.Sequence, msg.Header), PublishedAt: msg.Time}
	if stored.Change, stored.Refused = topology.DecodeRawChange(msg.Subject, msg.Header, msg.Data); stored.Refused != nil {
		return stored, fmt.Errorf("sequence %d: %w: %w", msg.Sequence, ErrMalformed, stored.Refused)
	}
	return stored, nil
}

// ReadTombstone returns the message at a sequence of a tombstone's own subject. The error is [ErrNoMessage] if the
// message no longer exists.
func (p *Publisher) ReadTombstone(ctx context.Context, subject string, sequence uint64) (StoredMessage, error) {
	stream, err := p.openStreamAtLeader(ctx, topology.Changes)
	if err != nil {
		return StoredMessage{}, fault.Unavailable(err)
	}
	msg, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && msg.Subject != subject {
		return StoredMessage{}, fmt.Errorf("read message %d: %w", sequence, ErrNoMessage)
	}
	if err != nil {
		return StoredMessage{}, fault.Unavailable(fmt.Errorf("read message %d of %s: %w", sequence, topology.Changes, err))
	}
	stored := StoredMessage{PublishedAt: msg.Time}
	stored.Change, stored.Refused = topology.DecodeRawChange(msg.Subject, msg.Header, msg.Data)
	stored.Entry = entryOf(stored.Change.Key, msg.Sequence, msg.Header)
	return stored, nil
}

// openStreamAtLeader opens a stream whose reads are answered by its leader. Another replica may lag, so a missing
// message would prove nothing there.
func (p *Publisher) openStreamAtLeader(ctx context.Context, name string) (jetstream.Stream, error) {
	stream, err := p.js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", name, err)
	}
	stream.CachedInfo().Config.AllowDirect = false // With direct reads, any replica would answer.
	return stream, nil
}

// RemoveMalformedMessage deletes a message if it is on the given subject and cannot be decoded. Otherwise every reader
// of the stream would receive it again. It reports whether it deleted the message.
func (p *Publisher) RemoveMalformedMessage(ctx context.Context, subject string, sequence uint64) (bool, error) {
	stream, err := p.openStreamAtLeader(ctx, topology.Changes)
	if err != nil {
		return false, fault.Unavailable(err)
	}
	msg, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fault.Unavailable(fmt.Errorf("read message %d of %s: %w", sequence, topology.Changes, err))
	}
	if _, err = topology.DecodeRawChange(subject, msg.Header, msg.Data); err == nil || msg.Subject != subject {
		return false, nil
	}
	return true, p.RemoveMessage(ctx, sequence)
}

// RemoveMessage deletes one message, for example a malformed message on the subject of a missing object. It returns no
// error if the message does not exist.
func (p *Publisher) RemoveMessage(ctx context.Context, sequence uint64) error {
	stream, err := p.openStreamAtLeader(ctx, topology.Changes)
	if err != nil {
		return fault.Unavailable(err)
	}
	err = stream.DeleteMsg(ctx, sequence)
	if err == nil {
		return nil
	}
	if _, missing := stream.GetMsg(ctx, sequence); errors.Is(missing, jetstream.ErrMsgNotFound) {
		return nil
	}
	return fault.Unavailable(fmt.Errorf("remove message %d of %s: %w", sequence, topology.Changes, err))
}
