package leader

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/topology"
)

// leaseAuthor is the author of the newest lease on the stream.
type leaseAuthor int

const (
	// noAuthor means that there is no lease, or that the last leader resigned.
	noAuthor leaseAuthor = iota
	thisReplica
	otherReplica
)

// RenewLease publishes the first lease of a term, or renews it. A renewal expects this replica's own lease as the
// newest one. If another replica has published a lease since, the term ends.
func (e *Elector) RenewLease(ctx context.Context, term uint64) error {
	e.renewing.Lock()
	defer e.renewing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	e.mu.Lock()
	own, again := e.leaseSequence, e.expiry > 0
	e.mu.Unlock()
	last, before := own, thisReplica
	look := func() (err error) {
		last, before, err = e.readLastLease(ctx)
		// This replica's previous lease was lost, so another replica may have held a lease before it.
		if !again && before == thisReplica && last != own {
			before = otherReplica
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
	if topology.IsSequenceConflict(err) {
		// The newest lease is not this replica's own, so the term is over. Otherwise the lease was stored and only the
		// answer was lost.
		if err = look(); err == nil && again && before != thisReplica {
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
	if e.leaseSequence = lease.Sequence; before == otherReplica {
		e.vacated = bootclock.Now() + e.bounds.LeaseLifetime
	}
	if e.pinID != "" && e.term == term {
		e.expiry = sent + e.bounds.LeaseLifetime
	}
	return nil
}

func (e *Elector) publishLease(ctx context.Context, text string, last uint64) (*jetstream.PubAck, error) {
	ack, err := e.js.Publish(ctx, topology.LeaseSubject(e.service), []byte(text), jetstream.WithExpectLastSequencePerSubject(last))
	if err != nil {
		return nil, fmt.Errorf("publish the lease: %w", err)
	}
	return ack, nil
}

// readLastLease returns the newest lease. The answer may be outdated; then NATS refuses the next lease.
func (e *Elector) readLastLease(ctx context.Context) (sequence uint64, by leaseAuthor, err error) {
	stream, err := e.openLeaseStream(ctx)
	if err != nil {
		return 0, noAuthor, err
	}
	msg, err := stream.GetLastMsgForSubject(ctx, topology.LeaseSubject(e.service))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, noAuthor, nil
	case err != nil:
		return 0, noAuthor, fmt.Errorf("read the last claim: %w", err)
	case string(msg.Data) == e.id:
		by = thisReplica
	case len(msg.Data) > 0:
		by = otherReplica
	}
	return msg.Sequence, by, nil
}

// openLeaseStream returns the stream that holds the leases. If the stream was created again, its leases are lost, and
// the author of the last lease may still write. So the term then opens only after the lifetime of a lease.
func (e *Elector) openLeaseStream(ctx context.Context) (jetstream.Stream, error) {
	stream, err := e.js.Stream(ctx, topology.Changes)
	if err != nil {
		return nil, fmt.Errorf("look up stream: %w", err)
	}
	streamID := topology.StreamID(stream.CachedInfo())
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streamID != "" && e.streamID != streamID {
		e.vacated = bootclock.Now() + e.bounds.LeaseLifetime
	}
	e.streamID = streamID
	return stream, nil
}

// Resign gives up the term if this replica is pinned, so that another replica need not wait until the lease expires.
// It publishes an empty lease to show this. It does not do so while an earlier leader's lease may be valid, because
// the next leader must wait for that lease too.
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
	if err := stream.UnpinConsumer(ctx, e.service, topology.PriorityGroup); err != nil {
		return fmt.Errorf("unpin: %w", err)
	}
	return nil
}
