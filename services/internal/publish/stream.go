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

// Incarnation tells which life of the stream of changes this is; [ErrNone] that there is none.
func (p *Publisher) Incarnation(ctx context.Context) (string, error) {
	stream, err := p.js.Stream(ctx, topology.Changes)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return "", fmt.Errorf("open stream %s: %w", topology.Changes, ErrNone)
	}
	if err != nil {
		return "", fault.Unavailable(fmt.Errorf("open stream %s: %w", topology.Changes, err))
	}
	return topology.Incarnation(stream.CachedInfo()), nil
}

// Ensure makes the streams that are missing.
func (p *Publisher) Ensure(ctx context.Context, replicas int) error {
	return topology.Ensure(ctx, p.js, replicas)
}

// Stored is a message as the stream keeps it.
type Stored struct {
	Head
	Change event.Change
	// PublishedAt is when the stream took it.
	PublishedAt time.Time
}

// Last reads the newest message of k. [ErrNone] and [ErrMalformed] tell of an absent
// and of an unusable one; the latter's place is returned as well.
func (p *Publisher) Last(ctx context.Context, k event.Key) (Stored, error) {
	return p.last(ctx, topology.ChangeSubject(k), k)
}

func (p *Publisher) last(ctx context.Context, subject string, k event.Key) (Stored, error) {
	stream, err := p.led(ctx, topology.Changes)
	if err != nil {
		return Stored{}, fault.Unavailable(err)
	}
	msg, err := stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Stored{}, fmt.Errorf("read last change of %s: %w", k, ErrNone)
	}
	if err != nil {
		return Stored{}, fault.Unavailable(fmt.Errorf("read last change of %s: %w", k, err))
	}
	stored := Stored{Head: headOf(k, msg.Sequence, msg.Header), PublishedAt: msg.Time}
	if stored.Change, err = event.Unmarshal(k, msg.Data); err != nil {
		return stored, fmt.Errorf("sequence %d: %w: %w", msg.Sequence, ErrMalformed, err)
	}
	// The body rules; a replay of an old message may have been made without our headers.
	stored.Epoch, stored.UID = stored.Change.Epoch, stored.Change.UID
	stored.Version, stored.Deleted = stored.Change.ResourceVersion, stored.Change.Deleted
	return stored, nil
}

// led opens a stream so that its leader answers reads. Any replica may answer them otherwise, and
// that one of them lacks a message proves nothing.
func (p *Publisher) led(ctx context.Context, name string) (jetstream.Stream, error) {
	stream, err := p.js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", name, err)
	}
	stream.CachedInfo().Config.AllowDirect = false // What the client goes by when it reads.
	return stream, nil
}

// Remove takes one message off the stream, for instance a malformed one on the
// subject of an object that does not exist. Removing what is gone is no error.
func (p *Publisher) Remove(ctx context.Context, sequence uint64) error {
	stream, err := p.led(ctx, topology.Changes)
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
