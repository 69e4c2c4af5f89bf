package controller

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/truncate"
)

// maxReason bounds the reason in a dead letter, in bytes.
const maxReason = 1024

// bodyOmittedNote is appended to the reason if the message is too large for a dead letter.
const bodyOmittedNote = " (the message is too large to be kept here)"

// letterOverhead is an upper bound, in bytes, for the headers that the NATS client adds to a dead letter.
const letterOverhead = 512

// moveToDeadLetters copies the message to the dead letters. Only then does it remove the message from the consumer.
func (e *engine[K]) moveToDeadLetters(ctx context.Context, d *delivery) error {
	meta, err := d.msg.Metadata()
	if err != nil {
		return fmt.Errorf("read metadata: %w", err)
	}
	reason := truncate.Line(d.worst.err.Error(), maxReason)
	letter := nats.NewMsg(topology.DeadLetterSubject(e.cfg.Service.Name, d.msg.Subject()))
	letter.Data = d.msg.Data()
	letter.Header.Set(topology.ReasonHeader, reason)
	letter.Header.Set(topology.SubjectHeader, d.msg.Subject())
	letter.Header.Set(topology.ServiceHeader, e.cfg.Service.Name)
	letter.Header.Set(topology.SequenceHeader, fmt.Sprint(meta.Sequence.Stream))
	if int64(letter.Size()+letterOverhead) > e.cfg.JS.Conn().MaxPayload() {
		letter.Data = nil // With its headers, the dead letter would exceed NATS' limit.
		letter.Header.Set(topology.ReasonHeader, reason+bodyOmittedNote)
	}
	id := fmt.Sprintf("%s/%s/%d", e.cfg.Service.Name, meta.Timestamp, meta.Sequence.Stream)
	if _, err := e.cfg.JS.PublishMsg(ctx, letter, jetstream.WithMsgID(id)); err != nil {
		return fmt.Errorf("publish dead letter: %w", err)
	}
	e.cfg.Log.ErrorContext(ctx, "message given up; see the dead letters", slog.String("subject", d.msg.Subject()), slog.String("reason", reason))
	e.reportFailure(ctx, d, eventv1.Outcome_OUTCOME_DEAD_LETTERED)
	return d.msg.TermWithReason(reason)
}
