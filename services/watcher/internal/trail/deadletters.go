package trail

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

// maxScan bounds the letters that one call reads to find those of one service.
const maxScan = 5000

// ErrNoLetter means that the dead letter does not exist.
var ErrNoLetter = errors.New("no such dead letter")

// DeadLetter is a message that a service could not process.
type DeadLetter struct {
	// ID is the sequence in the stream of dead letters.
	ID      uint64
	Service string
	// Subject, Sequence and Data are those of the original message.
	Subject  string
	Sequence uint64
	Reason   string
	ParkedAt time.Time
	Data     []byte
}

// ListDeadLetters lists the letters of a service, or of all services if it is empty. They are sorted newest first, and
// older than before unless that is 0. The result next is the value of before for the following call, or 0 at the end. A
// call may return fewer than limit letters before the end.
func (t *StreamReader) ListDeadLetters(ctx context.Context, service string, before uint64, limit int) (letters []DeadLetter, next uint64, err error) {
	stream, err := t.openStream(ctx, topology.DeadLetters)
	if err != nil {
		return nil, 0, err
	}
	state := stream.CachedInfo().State
	if before == 0 || before > state.LastSeq {
		before = state.LastSeq + 1
	}
	for scanned := 0; before > state.FirstSeq && before > 1; scanned++ {
		if len(letters) == limit || scanned == maxScan {
			return letters, before, nil
		}
		before--
		letter, err := readDeadLetter(ctx, stream, before)
		if errors.Is(err, ErrNoLetter) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if service == "" || letter.Service == service {
			letters = append(letters, letter)
		}
	}
	return letters, 0, nil
}

// CountDeadLetters returns the number of dead letters.
func (t *StreamReader) CountDeadLetters(ctx context.Context) (uint64, error) {
	stream, err := t.openStream(ctx, topology.DeadLetters)
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.Msgs, nil
}

// GetDeadLetter reads one letter.
func (t *StreamReader) GetDeadLetter(ctx context.Context, id uint64) (DeadLetter, error) {
	stream, err := t.openStream(ctx, topology.DeadLetters)
	if err != nil {
		return DeadLetter{}, err
	}
	return readDeadLetter(ctx, stream, id)
}

// DiscardDeadLetter deletes a letter.
func (t *StreamReader) DiscardDeadLetter(ctx context.Context, id uint64) error {
	stream, err := t.openStream(ctx, topology.DeadLetters)
	if err != nil {
		return err
	}
	if err := stream.DeleteMsg(ctx, id); err != nil {
		return fault.Unavailable(fmt.Errorf("discard dead letter %d: %w", id, err))
	}
	return nil
}

func readDeadLetter(ctx context.Context, stream jetstream.Stream, id uint64) (DeadLetter, error) {
	msg, err := stream.GetMsg(ctx, id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return DeadLetter{}, fmt.Errorf("%w: %d", ErrNoLetter, id)
	}
	if err != nil {
		return DeadLetter{}, fault.Unavailable(fmt.Errorf("read dead letter %d: %w", id, err))
	}
	// An invalid header leaves 0, which means unknown.
	sequence, _ := strconv.ParseUint(msg.Header.Get(topology.SequenceHeader), 10, 64)
	return DeadLetter{
		ID: id, Service: msg.Header.Get(topology.ServiceHeader), Subject: msg.Header.Get(topology.SubjectHeader),
		Sequence: sequence, Reason: msg.Header.Get(topology.ReasonHeader), ParkedAt: msg.Time, Data: msg.Data,
	}, nil
}
