package controller

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

// delivery is one message that the engine has received and not yet settled.
type delivery struct {
	msg    jetstream.Msg
	change event.Change
	// replay requests a comparison with the backend even if nothing changed.
	replay bool
	// reported means that a reconciliation reported a result for the object of this message.
	reported bool
	// openKeys counts the keys that this message still waits for. worst is the worst disposition of the finished keys.
	openKeys int
	worst    disposition
}

// receiveMessage stores the change of a message in the informer and enqueues the affected keys.
func (e *engine[K]) receiveMessage(ctx context.Context, msg jetstream.Msg) {
	if term, another := e.elector.ObservePin(msg); another {
		e.observing.Go(func() { e.takeOver(ctx, term) })
	}
	d := &delivery{msg: msg, replay: msg.Headers().Get(topology.ReplayHeader) != ""}
	e.unsettled.addMessage(d)
	if msg.Subject() == topology.ResyncSubject(e.cfg.Service.Name) {
		e.handleResyncRequest(ctx, d)
		return
	}
	if err := e.applyDelivery(ctx, d); err != nil {
		d.worst = disposition{verdict: again, delay: e.backoff.Delay(1), err: err}
		if fault.IsTerminal(err) {
			d.worst.verdict = park
		} else {
			e.cfg.Log.WarnContext(ctx, "change not stored; it will be delivered again", slog.String("subject", msg.Subject()), slog.Any("error", err))
		}
		e.settleMessage(ctx, d)
		return
	}
	if !e.enqueueDelivery(d, e.updateRoute(d.change.Key)) {
		e.settleMessage(ctx, d)
	}
}

func (e *engine[K]) applyDelivery(ctx context.Context, d *delivery) error {
	change, err := topology.DecodeChange(d.msg)
	if err != nil {
		return err
	}
	d.change = change
	d.change.Object = nil
	return e.cfg.View.ApplyDelivery(ctx, change)
}

// markReportedDeliveries marks the messages of r whose object is in results.
func (e *engine[K]) markReportedDeliveries(r *pendingRequest, results []Result) {
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

// reportDeletion reports a deletion as applied, unless a reconciliation reported a result for it.
func (e *engine[K]) reportDeletion(ctx context.Context, d *delivery) {
	if d.change.Deleted && !d.reported && !e.cfg.View.HasLive(d.change.Key) {
		e.results.Report(ctx, Result{Change: d.change, Outcome: eventv1.Outcome_OUTCOME_APPLIED})
	}
}

// reportFailure reports that a change could not be applied. It reports nothing for a message that could not be
// decoded, because its object is unknown.
func (e *engine[K]) reportFailure(ctx context.Context, d *delivery, outcome eventv1.Outcome) {
	if d.change.UID != "" {
		e.results.Report(ctx, Result{Change: d.change, Outcome: outcome, Message: d.worst.err.Error()})
	}
}
