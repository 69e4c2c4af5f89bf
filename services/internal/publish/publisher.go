package publish

import (
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

// maxConflicts bounds the conflicts with other writers in one call.
const maxConflicts = 8

var (
	// ErrNoMessage means that a subject holds no message.
	ErrNoMessage = errors.New("nothing on the bus")
	// ErrMalformed means that a message is not a valid change of its subject.
	ErrMalformed = errors.New("malformed message on the bus")

	// ErrUnexpectedBarrier means that the last barrier on the stream is not the expected one.
	ErrUnexpectedBarrier = errors.New("the stream holds another barrier")
	// ErrMessageReplaced means that the subject of a forced change no longer holds the expected message.
	ErrMessageReplaced = errors.New("the message to correct was replaced meanwhile")

	errContended = errors.New("other writers are faster")
)

// Publisher writes changes, snapshot markers and barriers.
type Publisher struct {
	js jetstream.JetStream
	// connectionWithoutBarrier is 1 + the number of the oldest connection over which a change was acknowledged since the
	// last barrier. It is 0 if no change was acknowledged since.
	connectionWithoutBarrier atomic.Uint64
	// onAck is set by [Publisher.SetOnAck].
	onAck atomic.Pointer[func(uint64)]
}

// New returns a publisher.
func New(js jetstream.JetStream) *Publisher { return &Publisher{js: js} }

// PublicationOptions holds the options of one publication.
type PublicationOptions struct {
	// ContentHash is a hash of the fields that consumers use. [Entry] returns it.
	ContentHash string
	// Replay publishes a state again that is already stored, so that consumers process it again.
	Replay bool
	// Force stores the change even if the expected message has a newer version. If the subject holds another message,
	// the error is [ErrMessageReplaced]; the caller must then read the API server again, because that message may be
	// newer. Only the leader may use Force, to correct the stream.
	Force bool
	// MetadataOnly keeps the bodies of objects out of tombstones.
	MetadataOnly bool
	// TTL is the lifetime of a tombstone; 0 means [topology.TombstoneTTL]. Other changes do not expire.
	TTL time.Duration
}

// Ack describes the message that the subject now holds.
type Ack struct {
	Entry
	// Stale means that nothing was written, because the subject already held this state or a newer one.
	Stale bool
}

// PublishChange stores c on the subject of its object. expectedSequence is the sequence of the message there if that
// message has the UID and epoch of c; otherwise 0.
//
// If the subject holds another message, c replaces it only if c is newer; otherwise Ack.Stale is true and Ack
// describes the stored message. If the stored message has another UID or epoch, PublishChange first stores its
// tombstone (see [Publisher.PublishTombstone]). It omits an object that is too large for NATS.
func (p *Publisher) PublishChange(ctx context.Context, c event.Change, expectedSequence uint64, opts PublicationOptions) (Ack, error) {
	return p.publishIfExpected(ctx, topology.ChangeSubject(c.Key), c, expectedSequence, opts)
}

// PublishTombstone stores the deletion of an object whose name another object has now. Such a tombstone has its own
// subject.
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
	id := c.DeduplicationID()
	if opts.Replay || opts.Force {
		id = uniqueMessageID(c)
	}
	for range maxConflicts {
		connection := p.connectionNumber()
		pub, err := p.js.PublishMsg(ctx, msg, publishOptions(c, id, expected, opts)...)
		switch {
		case err == nil && pub.Duplicate && pub.Sequence != expected:
			// The server knows the message ID, but the subject holds another message: the first one was purged or
			// overwritten.
			id = uniqueMessageID(c)
			continue
		case err == nil:
			p.recordMessageWithoutBarrier(connection)
			p.notifyAcknowledged(pub.Sequence)
			return Ack{Entry: entryOf(c.Key, pub.Sequence, msg.Header)}, nil
		case !topology.IsSequenceConflict(err):
			return Ack{}, fault.Unavailable(fmt.Errorf("publish %s: %w", c.Key, err))
		case opts.Force:
			return Ack{}, fault.Unavailable(fmt.Errorf("publish %s: %w", c.Key, ErrMessageReplaced))
		}
		stored, err := p.readLastMessage(ctx, subject, c.Key)
		if done, err := isStoredNewEnough(c, stored, err, opts); done || err != nil {
			return Ack{Entry: stored.Entry, Stale: done}, err
		}
		if err := p.publishReplacedTombstone(ctx, stored.Change, c, opts); err != nil {
			return Ack{}, err
		}
		expected = stored.Sequence
	}
	return Ack{}, fault.Unavailable(fmt.Errorf("publish %s, %d attempts: %w", c.Key, maxConflicts, errContended))
}

// publishReplacedTombstone stores a tombstone of the state that c replaces. It stores nothing if c is a later state or
// the deletion of the same object.
func (p *Publisher) publishReplacedTombstone(ctx context.Context, old, c event.Change, opts PublicationOptions) error {
	if old.UID == "" || old.UID == c.UID && (old.Epoch == c.Epoch || c.Deleted) {
		return nil
	}
	if !old.Deleted {
		old.ObservedAt = c.ObservedAt
	}
	return p.PublishTombstone(ctx, old, opts)
}

// isStoredNewEnough decides a conflict with the stored message. done means that the stored state is the same or newer,
// so c is not written.
func isStoredNewEnough(c event.Change, stored StoredMessage, err error, opts PublicationOptions) (done bool, _ error) {
	switch {
	case errors.Is(err, ErrNoMessage), errors.Is(err, ErrMalformed):
		return false, nil
	case err != nil:
		return false, err
	case opts.Replay:
		return stored.Change.IsNewerThan(c), nil
	default:
		return !c.IsNewerThan(stored.Change), nil
	}
}

func uniqueMessageID(c event.Change) string { return c.DeduplicationID() + "/" + nuid.Next() }
