package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

// attempts bounds the conflicts with other writers in one Publish.
const attempts = 8

var (
	// ErrNone means that a subject holds no message.
	ErrNone = errors.New("nothing on the bus")
	// ErrMalformed means that a message is not a valid change of its subject.
	ErrMalformed = errors.New("malformed message on the bus")

	// ErrRefused means that the stream holds another barrier than the expected one.
	ErrRefused = errors.New("the stream holds another barrier")
	// ErrChanged means that the subject of a forced change does not hold the expected message any more.
	ErrChanged = errors.New("the message to correct was replaced meanwhile")

	errContended = errors.New("other writers are faster")
)

// Publisher writes changes, snapshot markers and barriers.
type Publisher struct {
	js jetstream.JetStream
	// uncovered is 1 + the number of the oldest connection over which a change was acknowledged since the last barrier. It
	// is 0 if the stream acknowledged none.
	uncovered atomic.Uint64
	// onAck is set by [Publisher.OnAck].
	onAck atomic.Pointer[func(uint64)]
}

// New returns a publisher.
func New(js jetstream.JetStream) *Publisher { return &Publisher{js: js} }

// PublicationOptions of one publication.
type PublicationOptions struct {
	// ContentHash is a fingerprint of the fields that consumers use. [Entry] returns it.
	ContentHash string
	// Replay publishes a state that is already stored once more, so that consumers process it again.
	Replay bool
	// Force stores the change whatever version the expected message has. If the subject holds another message, the error
	// is [ErrChanged]: the caller must read the API server again, because that message may be newer than the change.
	// Only the leader may use it, to correct the stream.
	Force bool
	// MetadataOnly keeps the bodies of objects out of tombstones.
	MetadataOnly bool
	// TTL bounds the life of a tombstone; 0 means [topology.TombstoneTTL]. Other changes do not expire.
	TTL time.Duration
}

func (o PublicationOptions) tombstoneTTL() time.Duration { return cmp.Or(o.TTL, topology.TombstoneTTL) }

// Ack describes the message that the subject now holds.
type Ack struct {
	Entry
	// Stale means that nothing was written, because the subject held a state that is as new.
	Stale bool
}

// PublishChange stores c on the subject of its object. expected is the sequence of the message that the caller expects there,
// if it is of the same UID and epoch; otherwise 0. If the subject holds another message, c replaces it only if c is
// newer; otherwise the Ack is Stale and describes the stored message. If the stored message is of another UID or epoch,
// Publish stores its tombstone first (see [Publisher.PublishTombstone]). An object that is too large for NATS is
// omitted.
func (p *Publisher) PublishChange(ctx context.Context, c event.Change, expected uint64, opts PublicationOptions) (Ack, error) {
	return p.publishIfExpected(ctx, topology.ChangeSubject(c.Key), c, expected, opts)
}

// PublishTombstone stores the deletion of an object whose name another object has now, on a subject of its own.
func (p *Publisher) PublishTombstone(ctx context.Context, c event.Change, opts PublicationOptions) error {
	c.Deleted = true
	if opts.MetadataOnly {
		c.Object = nil
	}
	_, err := p.publishIfExpected(ctx, topology.TombstoneSubject(c.Key, c.UID), c, 0, PublicationOptions{TTL: opts.TTL})
	return err
}

func (p *Publisher) publishIfExpected(ctx context.Context, subject string, c event.Change, expected uint64, opts PublicationOptions) (Ack, error) {
	msg, err := p.encodeMessage(subject, c, opts)
	if err != nil {
		return Ack{}, err
	}
	id := c.ID()
	if opts.Replay || opts.Force {
		id = uniqueMessageID(c)
	}
	for range attempts {
		connection := p.connectionNumber()
		pub, err := p.js.PublishMsg(ctx, msg, publishOptions(c, id, expected, opts)...)
		switch {
		case err == nil && pub.Duplicate && pub.Sequence != expected:
			// The server remembers the ID, but the subject holds another message: the first one was purged or
			// overwritten.
			id = uniqueMessageID(c)
			continue
		case err == nil:
			p.markUncovered(connection)
			p.notifyAcknowledged(pub.Sequence)
			return Ack{Entry: entryOf(c.Key, pub.Sequence, msg.Header)}, nil
		case !isSequenceConflict(err):
			return Ack{}, fault.Unavailable(fmt.Errorf("publish %s: %w", c.Key, err))
		case opts.Force:
			return Ack{}, fault.Unavailable(fmt.Errorf("publish %s: %w", c.Key, ErrChanged))
		}
		stored, err := p.readLastMessage(ctx, subject, c.Key)
		if done, err := resolveConflict(c, stored, err, opts); done || err != nil {
			return Ack{Entry: stored.Entry, Stale: done}, err
		}
		if err := p.publishReplacedTombstone(ctx, stored.Change, c, opts); err != nil {
			return Ack{}, err
		}
		expected = stored.Sequence
	}
	return Ack{}, fault.Unavailable(fmt.Errorf("publish %s, %d attempts: %w", c.Key, attempts, errContended))
}

// publishReplacedTombstone stores a tombstone of the state that c replaces, if no other message holds that state.
func (p *Publisher) publishReplacedTombstone(ctx context.Context, old, c event.Change, opts PublicationOptions) error {
	if old.UID == "" || old.UID == c.UID && (old.Epoch == c.Epoch || c.Deleted) {
		return nil
	}
	if !old.Deleted {
		old.ObservedAt = c.ObservedAt
	}
	return p.PublishTombstone(ctx, old, opts)
}

// resolveConflict decides a conflict with the stored message. It returns done if that is as new as c.
func resolveConflict(c event.Change, stored StoredMessage, err error, opts PublicationOptions) (done bool, _ error) {
	switch {
	case errors.Is(err, ErrNone), errors.Is(err, ErrMalformed):
		return false, nil
	case err != nil:
		return false, err
	case opts.Replay:
		return stored.Change.IsNewerThan(c), nil
	default:
		return !c.IsNewerThan(stored.Change), nil
	}
}

func uniqueMessageID(c event.Change) string { return c.ID() + "/" + nuid.Next() }

// isSequenceConflict reports whether an expected sequence was wrong. A replicated stream uses another error code while it
// decides about another message on the subject.
func isSequenceConflict(err error) bool {
	apiErr, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return false
	}
	const wrongLastSequenceConstant = 10164
	return apiErr.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || apiErr.ErrorCode == wrongLastSequenceConstant
}
