package leader

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/topology"
)

// lastHolder names the author of the lease before ours.
type lastHolder int

const (
	// nobody means that there is no lease, or that its author resigned.
	nobody lastHolder = iota
	ourselves
	another
)

// RenewLease publishes the first lease of a term, or renews it. A renewal expects our own last lease as the newest one: if
// another replica has published one since, the term is over.
func (e *Elector) RenewLease(ctx context.Context, term uint64) error {
	e.renewing.Lock()
	defer e.renewing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	e.mu.Lock()
	own, again := e.leaseSequence, e.expiry > 0
	e.mu.Unlock()
	last, before := own, ourselves
	look := func() (err error) {
		last, before, err = e.readLastLease(ctx)
		if !again && before == ourselves && last != own { // The replica before our lost lease is unknown.
			before = another
		}
		return err
	}
	if !again {
		if err := look(); err != nil {
			return err
		}
	}
	sent := bootclock.Now()
	lease, err := e.publishLease(ctx, e.id, last)
	if isSupersededErr(err) {
		if err = look(); err == nil && again && before != ourselves { // Otherwise our own lease was stored, and its answer was lost.
			e.endTerm(term)
			e.log.InfoContext(ctx, "another replica has taken over")
			return nil
		}
		if err == nil {
			sent = bootclock.Now()
			lease, err = e.publishLease(ctx, e.id, last)
		}
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leaseSequence = lease.Sequence; before == another {
		e.vacated = bootclock.Now() + e.bounds.Claim
	}
	if e.pinID != "" && e.term == term {
		e.expiry = sent + e.bounds.Claim
	}
	return nil
}

// isSupersededErr reports whether NATS refused a lease because a newer one exists.
func isSupersededErr(err error) bool {
	refusal, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

func (e *Elector) publishLease(ctx context.Context, text string, last uint64) (*jetstream.PubAck, error) {
	ack, err := e.js.Publish(ctx, topology.LeaseSubject(e.service), []byte(text), jetstream.WithExpectLastSequencePerSubject(last))
	if err != nil {
		return nil, fmt.Errorf("claim the turn: %w", err)
	}
	return ack, nil
}

// readLastLease returns the newest lease. It may be old: then NATS refuses the next lease.
func (e *Elector) readLastLease(ctx context.Context) (sequence uint64, by lastHolder, err error) {
	stream, err := e.openLeaseStream(ctx)
	if err != nil {
		return 0, nobody, err
	}
	msg, err := stream.GetLastMsgForSubject(ctx, topology.LeaseSubject(e.service))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nobody, nil
	case err != nil:
		return 0, nobody, fmt.Errorf("read the last claim: %w", err)
	case string(msg.Data) == e.id:
		by = ourselves
	case len(msg.Data) > 0:
		by = another
	}
	return msg.Sequence, by, nil
}

// openLeaseStream returns the stream of leases. If the stream was created again, its leases are lost, and the author of the
// last one may still be active. So the term then begins after that author's lease has expired.
func (e *Elector) openLeaseStream(ctx context.Context) (jetstream.Stream, error) {
	stream, err := e.js.Stream(ctx, topology.Changes)
	if err != nil {
		return nil, fmt.Errorf("look up stream: %w", err)
	}
	streamID := topology.StreamID(stream.CachedInfo())
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streamID != "" && e.streamID != streamID {
		e.vacated = bootclock.Now() + e.bounds.Claim
	}
	e.streamID = streamID
	return stream, nil
}

// Resign gives up the term if it is ours, so that another replica need not wait until the lease expires. It publishes no
// empty lease while an earlier replica may still be active: the next replica must wait for it, too.
func (e *Elector) Resign(ctx context.Context) error {
	e.renewing.Lock()
	defer e.renewing.Unlock()
	e.mu.Lock()
	leased, last, alone := e.pinID != "" && e.expiry > 0, e.leaseSequence, bootclock.Now() >= e.vacated
	e.pinID, e.open = "", false
	e.mu.Unlock()
	if !leased || !e.js.Conn().IsConnected() {
		return nil
	}
	if alone {
		if _, err := e.publishLease(ctx, "", last); err != nil {
			return err
		}
	}
	stream, err := e.openLeaseStream(ctx)
	if err != nil {
		return err
	}
	if err := stream.UnpinConsumer(ctx, e.service, topology.Group); err != nil {
		return fmt.Errorf("unpin: %w", err)
	}
	return nil
}
