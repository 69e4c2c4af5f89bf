// Package leader elects the one replica of a service that writes to backends, and fences its writes. JetStream chooses
// the leader, and a lease on the stream proves that no other replica still writes; see [Elector].
//
// Two invariants hold. A write is sent only while the leader's own lease is valid. A new leader writes only after the
// leases of all previous leaders have expired or were given up.
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

// pinHeader identifies the pinned replica in each message. JetStream changes the value with every new pin.
const pinHeader = "Nats-Pin-Id"

const (
	// renewals is the number of renewals within the lifetime of a lease. renewalTimeout bounds one renewal.
	renewals       = 4
	renewalTimeout = 2 * time.Second
	// maxTimeWithoutLease bounds the time without a valid lease before a pinned replica reports not ready.
	maxTimeWithoutLease = 10 * time.Second
)

// ErrNotLeader means that another replica may be the leader, so this replica must not write.
var ErrNotLeader = errors.New("another replica may be the active one by now")

// Elector decides whether this replica is certainly the only leader of its service. JetStream pins its messages to one
// replica at a time. The pin alone is not safe: a paused replica does not notice when its pin expires or moves to
// another replica.
//
// So the pinned replica also publishes a lease on the stream by compare-and-swap, and renews it. A lease is valid for
// [topology.TakeoverBounds].LeaseLifetime, counted from the moment before it is sent. A replica that replaces another
// replica's lease waits for this time before it writes, unless the other replica resigned.
//
// Every write to a backend checks [Elector.LeaseRemaining] as the last step before the request is sent.
type Elector struct {
	js      jetstream.JetStream
	service string
	log     *slog.Logger
	// bounds holds the lifetime of a lease.
	bounds topology.TakeoverBounds
	// id is the content of this replica's leases.
	id string
	// renewing is held while a lease is published.
	renewing sync.Mutex

	mu    sync.Mutex
	pinID string
	// term counts the terms of this replica. A new term may begin with the same pin after a lost term.
	term uint64
	// began is the time at which the term began, by [bootclock.Now].
	began time.Duration
	// open means that the previous leader has stopped and that the informer has caught up. Only an open term permits
	// writes.
	open bool
	// openSequence is the sequence of the newest lease when the term opened.
	openSequence uint64
	// expiry is the time at which this replica's lease expires, by [bootclock.Now]; zero means that it has no lease.
	expiry time.Duration
	// leaseSequence is the sequence of this replica's last lease.
	leaseSequence uint64
	// streamID is the creation time of the stream when it was last read.
	streamID string
	// vacated is the time, by [bootclock.Now], at which the leases of all previous leaders have expired.
	vacated time.Duration
}

// NewElector returns an elector without a term.
func NewElector(js jetstream.JetStream, service string, bounds topology.TakeoverBounds, log *slog.Logger) *Elector {
	host, _ := os.Hostname() // The host name only helps operators.
	return &Elector{js: js, service: service, bounds: bounds, log: log, id: strings.TrimPrefix(host+"-"+nuid.Next(), "-")}
}

// ReplicaID returns the ID of this replica. It changes with every restart.
func (e *Elector) ReplicaID() string { return e.id }

// LeaseRemaining returns how long this replica is certainly the leader, or [ErrNotLeader].
func (e *Elector) LeaseRemaining() (time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if left := e.expiry - bootclock.Now(); left > 0 && e.open {
		return left, nil
	}
	return 0, ErrNotLeader
}

// Err returns an error if this replica is pinned but has had no valid lease for maxTimeWithoutLease. Such a replica
// blocks the work of the service.
func (e *Elector) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	since := e.began
	if e.open {
		since = e.expiry
	}
	if d := bootclock.Since(since); e.pinID != "" && d > maxTimeWithoutLease {
		return fmt.Errorf("the lease has not been confirmed for %s", d.Round(time.Second))
	}
	return nil
}

// IsLeader reports whether this replica is certainly the leader.
func (e *Elector) IsLeader() bool {
	_, err := e.LeaseRemaining()
	return err == nil
}

// CurrentTerm returns the current term and reports whether this replica is pinned.
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

// IsCurrentTerm reports whether this replica is pinned and term is its current term.
func (e *Elector) IsCurrentTerm(term uint64) bool {
	now, ours := e.CurrentTerm()
	return ours && now == term
}

// ObservePin reads the pin of a message. It starts a new term if the pin changed, and reports this as another.
func (e *Elector) ObservePin(msg jetstream.Msg) (term uint64, isNew bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	pin := msg.Headers().Get(pinHeader)
	if isNew = pin != e.pinID; isNew {
		e.pinID, e.began, e.expiry, e.open = pin, bootclock.Now(), 0, false
		e.term++
	}
	return e.term, isNew
}

// OpenTerm marks a term as open. It returns false if the term is no longer the current one.
func (e *Elector) OpenTerm(term uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pinID == "" || e.term != term {
		return false
	}
	e.open, e.openSequence = true, e.leaseSequence
	return true
}

// HasOpenedBefore reports whether the term is open and its lease precedes a sequence of the stream.
func (e *Elector) HasOpenedBefore(sequence uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open && e.openSequence < sequence
}

// endTerm ends term if it is the current one.
func (e *Elector) endTerm(term uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.term == term {
		e.pinID, e.open = "", false
	}
}

// AwaitPredecessors waits until the leases of all previous leaders have expired.
func (e *Elector) AwaitPredecessors(ctx context.Context) {
	e.mu.Lock()
	left := e.vacated - bootclock.Now()
	e.mu.Unlock()
	if left > 0 {
		backoff.Sleep(ctx, left)
	}
}

// Run renews the lease until ctx ends. A standby replica requests the term if no replica renews the lease.
func (e *Elector) Run(ctx context.Context) {
	_, _ = e.openLeaseStream(ctx) // The call stores the stream ID, so that a change of the stream is noticed.
	next := time.NewTicker(e.bounds.LeaseLifetime / renewals)
	defer next.Stop()
	seen := standbyWatch{vacant: vacantLeases * e.bounds.LeaseLifetime}
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
			err = e.requestTermIfLeaseExpired(ctx, &seen)
		case leased:
			err = e.RenewLease(ctx, term)
		}
		if err != nil {
			e.log.DebugContext(ctx, "lease neither read nor renewed", slog.Any("error", err))
		}
	}
}
