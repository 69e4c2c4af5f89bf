package controller

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/truncate"
)

// delivery is one message on its way through the engine.
type delivery struct {
	msg    jetstream.Msg
	change event.Change
	// replay requests a comparison with the backend although nothing changed.
	replay bool
	// reported means that a pass reported a result for the object of this message.
	reported bool
	// keys counts the keys that are still to be reconciled. worst is the worst disposition of the others.
	keys  int
	worst disposition
}

// receiveMessage stores the change of a message in the view, and enqueues the keys that it touches.
func (e *engine[K]) receiveMessage(ctx context.Context, msg jetstream.Msg) {
	if turn, another := e.place.beginsTurn(msg); another {
		e.observing.Go(func() { e.takeOver(ctx, turn) })
	}
	d := &delivery{msg: msg, replay: msg.Headers().Get(topology.ReplayHeader) != ""}
	e.unsettled.takeMessage(d)
	if msg.Subject() == topology.WakeSubject(e.cfg.Service.Name) {
		e.handleResync(ctx, d)
		return
	}
	if err := e.readDelivery(ctx, d); err != nil {
		d.worst = disposition{verdict: again, delay: e.backoff.Delay(1), err: err}
		if fault.IsTerminal(err) {
			d.worst.verdict = park
		} else {
			e.cfg.Log.WarnContext(ctx, "change not taken in; it will come again", slog.String("subject", msg.Subject()), slog.Any("error", err))
		}
		e.disposeMessage(ctx, d)
		return
	}
	if !e.attachDelivery(d, e.routeObject(d.change.Key)) {
		e.disposeMessage(ctx, d)
	}
}

// takeOver opens a turn once the previous replica has surely stopped and the view holds everything that the stream
// holds. The view must be complete because messages of that replica are not delivered again. It then reconciles
// everything, which completes the unfinished work of that replica.
func (e *engine[K]) takeOver(ctx context.Context, turn uint64) {
	for err := e.prepareTurn(ctx, turn); err != nil; err = e.prepareTurn(ctx, turn) {
		e.cfg.Log.WarnContext(ctx, "turn not begun yet", slog.Any("error", err))
		if !backoff.Sleep(ctx, rebind) || !e.place.isCurrent(turn) {
			return
		}
	}
	e.results.Forget()  // The replica before may have reported other results since.
	e.enqueueAll(false) // Enqueued before the turn opens, so that later requests merge with it.
	if !e.place.openTurn(turn) {
		return
	}
	// Requests that the replica before had sent may still take effect.
	if backoff.Sleep(ctx, e.cfg.Takeover.Settling) && e.place.isCurrent(turn) {
		e.enqueueRecent()
	}
}

// prepareTurn claims a turn, and waits until the replica before has stopped and the view holds everything that the stream
// holds.
func (e *engine[K]) prepareTurn(ctx context.Context, turn uint64) error {
	if err := e.place.claimTurn(ctx, turn); err != nil {
		return err
	}
	e.place.awaitPredecessors(ctx)
	return e.cfg.View.CatchUp(ctx)
}

func (e *engine[K]) readDelivery(ctx context.Context, d *delivery) error {
	change, err := topology.DecodeChange(d.msg)
	if err != nil {
		return err
	}
	d.change = change
	d.change.Object = nil
	return e.cfg.View.Apply(ctx, change)
}

// maxReason bounds the reason in a dead letter, in bytes.
const maxReason = 1024

// withoutBody is added to the reason if the message is too large for a dead letter.
const withoutBody = " (the message is too large to be kept here)"

// letterOverhead bounds the size of the headers that sending adds.
const letterOverhead = 512

// deadLetter copies the message to the dead letters, and only then removes it from the consumer.
func (e *engine[K]) deadLetter(ctx context.Context, d *delivery) error {
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
		letter.Data = nil // The headers leave no room for the body.
		letter.Header.Set(topology.ReasonHeader, reason+withoutBody)
	}
	id := fmt.Sprintf("%s/%s/%d", e.cfg.Service.Name, meta.Timestamp, meta.Sequence.Stream)
	if _, err := e.cfg.JS.PublishMsg(ctx, letter, jetstream.WithMsgID(id)); err != nil {
		return fmt.Errorf("publish dead letter: %w", err)
	}
	e.cfg.Log.ErrorContext(ctx, "message given up; see the dead letters", slog.String("subject", d.msg.Subject()), slog.String("reason", reason))
	e.reportFailure(ctx, d, eventv1.Outcome_OUTCOME_DEAD_LETTERED)
	return d.msg.TermWithReason(reason)
}

// noteReported marks the messages for whose objects a pass reported a result.
func (e *engine[K]) noteReported(r *pending, results []Result) {
	type object struct {
		key event.Key
		uid string
	}
	reported := make(map[object]struct{}, len(results))
	for _, result := range results {
		reported[object{result.Change.Key, result.Change.UID}] = struct{}{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range r.deliveries {
		_, is := reported[object{d.change.Key, d.change.UID}]
		d.reported = d.reported || is
	}
}

// reportDeletion reports a deletion as applied, unless a pass reported a result for it. Earlier results of the object
// go with the tombstone.
func (e *engine[K]) reportDeletion(ctx context.Context, d *delivery) {
	if d.change.Deleted && !d.reported && !e.cfg.View.HasLive(d.change.Key) {
		e.results.Report(ctx, Result{Change: d.change, Outcome: eventv1.Outcome_OUTCOME_APPLIED})
	}
}

// reportFailure reports that a change could not be applied. A message that could not be decoded has no object to
// report.
func (e *engine[K]) reportFailure(ctx context.Context, d *delivery, outcome eventv1.Outcome) {
	if d.change.UID != "" {
		e.results.Report(ctx, Result{Change: d.change, Outcome: outcome, Message: d.worst.err.Error()})
	}
}
