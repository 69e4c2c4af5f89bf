package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

// attempts bounds how often one Publish runs into other writers before it gives up.
const attempts = 8

var (
	// ErrNone is returned when a subject holds no message.
	ErrNone = errors.New("nothing on the bus")
	// ErrMalformed is returned with the place of a message that is not a change of its subject.
	ErrMalformed = errors.New("malformed message on the bus")

	errContended = errors.New("other writers are faster")
)

// Publisher writes changes and snapshot markers.
type Publisher struct {
	js jetstream.JetStream
}

// New makes a publisher.
func New(js jetstream.JetStream) *Publisher { return &Publisher{js: js} }

// Options of one publication.
type Options struct {
	// Meaning is a fingerprint of what consumers can see of the object. It comes back in [Head].
	Meaning string
	// Replay publishes a state that is on the bus already once more, so that consumers
	// process it anew.
	Replay bool
	// MetadataOnly keeps the bodies of tombstones off the bus.
	MetadataOnly bool
	// TTL is how long a deletion is kept; 0 means [topology.TombstoneTTL]. Other changes stay.
	TTL time.Duration
}

func (o Options) ttl() time.Duration { return cmp.Or(o.TTL, topology.TombstoneTTL) }

// Ack says what the subject now holds.
type Ack struct {
	Head
	// Stale means that nothing was written: a state that is as new was there.
	Stale bool
}

// Publish puts c on its subject. expected is the sequence of the message that the
// caller believes to be there, if that is of the same object (UID) and epoch, else 0. If another
// one is, c is still published when it is newer; else the Ack is Stale and tells what is there.
// Another object, or the same one in another epoch, gets a tombstone first: see [Publisher.PublishTombstone].
// An object too large for the bus is omitted.
func (p *Publisher) Publish(ctx context.Context, c event.Change, expected uint64, opts Options) (Ack, error) {
	return p.publish(ctx, topology.ChangeSubject(c.Key), c, expected, opts)
}

// PublishTombstone publishes the deletion of an object whose name another has by now, on a subject of its own.
func (p *Publisher) PublishTombstone(ctx context.Context, c event.Change, opts Options) error {
	c.Deleted = true
	if opts.MetadataOnly {
		c.Object = nil
	}
	_, err := p.publish(ctx, topology.TombstoneSubject(c.Key, c.UID), c, 0, Options{TTL: opts.TTL})
	return err
}

func (p *Publisher) publish(ctx context.Context, subject string, c event.Change, expected uint64, opts Options) (Ack, error) {
	msg, err := p.message(subject, c, opts)
	if err != nil {
		return Ack{}, err
	}
	id := c.ID()
	if opts.Replay {
		id = unique(c)
	}
	for range attempts {
		pub, err := p.js.PublishMsg(ctx, msg, conditions(c, id, expected, opts)...)
		switch {
		case err == nil && pub.Duplicate && pub.Sequence != expected:
			// The server knows the ID, yet the subject holds something else: the message was purged or overwritten.
			id = unique(c)
			continue
		case err == nil:
			return Ack{Head: headOf(c.Key, pub.Sequence, msg.Header)}, nil
		case !isConflict(err):
			return Ack{}, fault.Unavailable(fmt.Errorf("publish %s: %w", c.Key, err))
		}
		stored, err := p.last(ctx, subject, c.Key)
		if done, err := resolve(c, stored, err, opts); done || err != nil {
			return Ack{Head: stored.Head, Stale: done}, err
		}
		if err := p.publishReplaced(ctx, stored.Change, c, opts); err != nil {
			return Ack{}, err
		}
		expected = stored.Sequence
	}
	return Ack{}, fault.Unavailable(fmt.Errorf("publish %s, %d attempts: %w", c.Key, attempts, errContended))
}

// publishReplaced keeps what c is about to overwrite and no other message tells of. The deletion
// of an object has its last state.
func (p *Publisher) publishReplaced(ctx context.Context, old, c event.Change, opts Options) error {
	if old.UID == "" || old.UID == c.UID && (old.Epoch == c.Epoch || c.Deleted) {
		return nil
	}
	if !old.Deleted {
		old.ObservedAt = c.ObservedAt
	}
	return p.PublishTombstone(ctx, old, opts)
}

// resolve decides a conflict with what is stored: done when that is as new as c.
func resolve(c event.Change, stored Stored, err error, opts Options) (done bool, _ error) {
	switch {
	case errors.Is(err, ErrNone), errors.Is(err, ErrMalformed):
		return false, nil
	case err != nil:
		return false, err
	case opts.Replay:
		return stored.Change.NewerThan(c), nil
	default:
		return !c.NewerThan(stored.Change), nil
	}
}

func unique(c event.Change) string { return c.ID() + "/" + nuid.Next() }

// isConflict reports a failed expectation; a replicated stream says it differently
// while another proposal for the subject is under way.
func isConflict(err error) bool {
	apiErr, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return false
	}
	const wrongLastSequenceConstant = 10164
	return apiErr.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || apiErr.ErrorCode == wrongLastSequenceConstant
}
