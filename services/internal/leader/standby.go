package leader

import (
	"context"
	"time"

	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/topology"
)

// vacantLeases bounds the time without a renewed lease before a standby requests the term, in lifetimes of a lease.
const vacantLeases = 2

// standbyWatch holds the newest lease that a standby has seen. since is the time of the first sight of this lease, or
// of the last request. looked is the time of the last read. Both times are [bootclock.Now].
type standbyWatch struct {
	// vacant is how long a lease must be the newest before the first request.
	vacant        time.Duration
	lease         uint64
	since, looked time.Duration
	// requests counts the requests for the term that no new lease followed.
	requests int
}

// maxDoublings bounds the growth of the wait between requests. Without growth, requests would never end if the pinned
// replica has no permission to publish a lease.
const maxDoublings = 5

// observeLease reports whether the standby must request the term now. If so, it counts the request.
func (s *standbyWatch) observeLease(lease uint64, now time.Duration) bool {
	if lease != s.lease || s.since == 0 {
		s.lease, s.since, s.requests = lease, now, 0
		return false
	}
	if now-s.since < s.vacant<<min(s.requests, maxDoublings) {
		return false
	}
	s.since, s.requests = now, s.requests+1
	return true
}

// requestTermIfLeaseExpired requests the term if no replica renews the lease: it publishes a message to the service.
// JetStream pins a replica only when it delivers a message. If the leader died, there may be no other message to
// deliver.
func (e *Elector) requestTermIfLeaseExpired(ctx context.Context, seen *standbyWatch) error {
	now := bootclock.Now()
	if now-seen.looked < e.bounds.LeaseLifetime {
		return nil
	}
	seen.looked = now
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	lease, _, err := e.readLastLease(ctx)
	if err != nil || !seen.observeLease(lease, now) {
		return err
	}
	if seen.requests == 2 {
		e.log.WarnContext(ctx, "no replica holds the lease; check that the NATS user may publish claims")
	}
	_, err = e.js.Publish(ctx, topology.ResyncSubject(e.service), nil)
	return err
}
