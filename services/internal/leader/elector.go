// Package leader elects the one replica of a service that writes to backends, and fences its writes: see [Elector].
package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/topology"
)

// pinHeader identifies the pinned replica in each message. JetStream changes it with every pin.
const pinHeader = "Nats-Pin-Id"

const (
	// renewals is the number of renewals within the lifetime of a lease. renewalTimeout bounds one.
	renewals       = 4
	renewalTimeout = 2 * time.Second
	// doubtful bounds the time that a replica may be unsure of its term before it reports not ready.
	doubtful = 10 * time.Second
)

// ErrNotLeader means that another replica may be active, so this one must write nothing.
var ErrNotLeader = errors.New("another replica may be the active one by now")

// Elector decides whether this replica is surely the only active one of its service. JetStream delivers messages to one
// replica at a time, by a pin. A paused replica does not notice when its pin expires or moves to another replica.
//
// So the pinned replica also publishes a lease on the stream, by compare-and-swap, and renews it. A lease is valid for
// [topology.TakeoverBounds].Claim from when it was sent. A replica that publishes a lease after another one waits for that
// time, unless the other resigned. Every write to a backend checks [Elector.LeaseRemaining] as the last step before the
// request is sent.
type Elector struct {
	js      jetstream.JetStream
	service string
	log     *slog.Logger
	// bounds holds the lifetime of a lease.
	bounds topology.TakeoverBounds
	// id is the content of our leases.
	id string
	// renewing is held while a lease is published.
	renewing sync.Mutex

	mu    sync.Mutex
	pinID string
	// term counts the terms that began here. A lost term may begin again with the same pin.
	term uint64
	// began is the time at which the term began, by [bootclock.Now].
	began time.Duration
	// open means that the replica before has stopped, and that our view holds everything that it knew.
	open bool
	// openSequence is the sequence of the lease with which the term opened.
	openSequence uint64
	// expiry is the time at which our lease expires, by [bootclock.Now].
	expiry time.Duration
	// leaseSequence is the sequence of our last lease.
	leaseSequence uint64
	// streamID is the creation time of the stream when it was last read.
	streamID string
	// vacated is the time at which the leases of all replicas before us have expired.
	vacated time.Duration
}

// NewElector returns an elector without a term.
func NewElector(js jetstream.JetStream, service string, bounds topology.TakeoverBounds, log *slog.Logger) *Elector {
	host, _ := os.Hostname() // For people only.
	return &Elector{js: js, service: service, bounds: bounds, log: log, id: strings.TrimPrefix(host+"-"+nuid.Next(), "-")}
}

// ReplicaID returns the id of this replica. It differs after a restart.
func (e *Elector) ReplicaID() string { return e.id }

// LeaseRemaining returns the time for which the term is surely ours, or [ErrNotLeader].
func (e *Elector) LeaseRemaining() (time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if left := e.expiry - bootclock.Now(); left > 0 && e.open {
		return left, nil
	}
	return 0, ErrNotLeader
}

// Err returns an error if this replica is pinned, but could not open or renew its term for the time doubtful. It then
// delays all work of the service.
func (e *Elector) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	since := e.began
	if e.open {
		since = e.expiry
	}
	if d := bootclock.Since(since); e.pinID != "" && d > doubtful {
		return fmt.Errorf("not sure of its turn for %s", d.Round(time.Second))
	}
	return nil
}

// IsLeader reports whether the term is surely ours.
func (e *Elector) IsLeader() bool {
	_, err := e.LeaseRemaining()
	return err == nil
}

// CurrentTerm returns the present term, and reports whether this replica is pinned.
func (e *Elector) CurrentTerm() (term uint64, ours bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term, e.pinID != ""
}

// IsPinned reports whether this replica is pinned. Its lease may have expired.
func (e *Elector) IsPinned() bool {
	_, ours := e.CurrentTerm()
	return ours
}

// IsCurrentTerm reports whether a term is the present one.
func (e *Elector) IsCurrentTerm(term uint64) bool {
	now, ours := e.CurrentTerm()
	return ours && now == term
}

// ObservePin reads the pin of a message, and reports whether a new term begins with it.
func (e *Elector) ObservePin(msg jetstream.Msg) (term uint64, another bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	pin := msg.Headers().Get(pinHeader)
	if another = pin != e.pinID; another {
		e.pinID, e.began, e.expiry, e.open = pin, bootclock.Now(), 0, false
		e.term++
	}
	return e.term, another
}

// OpenTerm marks a term as open, and reports whether it was still the present one.
func (e *Elector) OpenTerm(term uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pinID == "" || e.term != term {
		return false
	}
	e.open, e.openSequence = true, e.leaseSequence
	return true
}

// HasOpenedBefore reports whether our term is open, and its lease precedes a sequence of the stream.
func (e *Elector) HasOpenedBefore(sequence uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open && e.openSequence < sequence
}

// endTerm ends a term.
func (e *Elector) endTerm(term uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.term == term {
		e.pinID, e.open = "", false
	}
}

// AwaitPredecessors waits until the leases of all replicas before us have expired.
func (e *Elector) AwaitPredecessors(ctx context.Context) {
	e.mu.Lock()
	left := e.vacated - bootclock.Now()
	e.mu.Unlock()
	if left > 0 {
		backoff.Sleep(ctx, left)
	}
}

// Run renews the lease until ctx ends. On a standby it makes sure that some replica takes the term.
func (e *Elector) Run(ctx context.Context) {
	_, _ = e.openLeaseStream(ctx) // Stores the first stream ID, to notice another one.
	next := time.NewTicker(e.bounds.Claim / renewals)
	defer next.Stop()
	seen := standbyWatch{vacant: vacantLeases * e.bounds.Claim}
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		e.mu.Lock()
		term, pinned, leased := e.term, e.pinID != "", e.expiry > 0
		e.mu.Unlock()
		var err error
		switch {
		case !pinned:
			err = e.requestTermIfVacant(ctx, &seen)
		case leased:
			err = e.RenewLease(ctx, term)
		}
		if err != nil {
			e.log.DebugContext(ctx, "turn not seen to", slog.Any("error", err))
		}
	}
}
