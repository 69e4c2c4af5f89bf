package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/topology"
)

// predecessor names the author of the claim before ours.
type predecessor int

const (
	// nobody means that there is no claim, or that its author gave up the turn properly.
	nobody predecessor = iota
	ourselves
	another
)

// claimTurn publishes that the turn is ours, or renews that. A renewal expects our own last claim as the newest one: if
// another replica has claimed since, the turn is over.
func (p *Elector) claimTurn(ctx context.Context, turn uint64) error {
	p.claiming.Lock()
	defer p.claiming.Unlock()
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	p.mu.Lock()
	claimed, again := p.claimed, p.until > 0
	p.mu.Unlock()
	last, before := claimed, ourselves
	look := func() (err error) {
		last, before, err = p.lastClaim(ctx)
		if !again && before == ourselves && last != claimed { // The replica before our lost claim is unknown.
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
	claim, err := p.publishClaim(ctx, p.id, last)
	if isOvertaken(err) {
		if err = look(); err == nil && again && before != ourselves { // Otherwise our own claim was stored, and its answer was lost.
			p.loseTurn(turn)
			p.log.InfoContext(ctx, "another replica has taken over")
			return nil
		}
		if err == nil {
			sent = bootclock.Now()
			claim, err = p.publishClaim(ctx, p.id, last)
		}
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claimed = claim.Sequence; before == another {
		p.clear = bootclock.Now() + p.bounds.Claim
	}
	if p.pinID != "" && p.turn == turn {
		p.until = sent + p.bounds.Claim
	}
	return nil
}

// isOvertaken reports whether NATS refused a claim because a newer one exists.
func isOvertaken(err error) bool {
	refusal, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

func (p *Elector) publishClaim(ctx context.Context, text string, last uint64) (*jetstream.PubAck, error) {
	ack, err := p.js.Publish(ctx, topology.TurnSubject(p.service), []byte(text), jetstream.WithExpectLastSequencePerSubject(last))
	if err != nil {
		return nil, fmt.Errorf("claim the turn: %w", err)
	}
	return ack, nil
}

// lastClaim returns the newest claim. It may be old: then NATS refuses the next claim.
func (p *Elector) lastClaim(ctx context.Context) (sequence uint64, by predecessor, err error) {
	stream, err := p.claimStream(ctx)
	if err != nil {
		return 0, nobody, err
	}
	msg, err := stream.GetLastMsgForSubject(ctx, topology.TurnSubject(p.service))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nobody, nil
	case err != nil:
		return 0, nobody, fmt.Errorf("read the last claim: %w", err)
	case string(msg.Data) == p.id:
		by = ourselves
	case len(msg.Data) > 0:
		by = another
	}
	return msg.Sequence, by, nil
}

// claimStream returns the stream of claims. If the stream was created again, its claims are lost, and the author of the last
// one may still be active. So the turn then begins after that author's claim has expired.
func (p *Elector) claimStream(ctx context.Context) (jetstream.Stream, error) {
	stream, err := p.js.Stream(ctx, topology.Changes)
	if err != nil {
		return nil, fmt.Errorf("look up stream: %w", err)
	}
	life := topology.Incarnation(stream.CachedInfo())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != "" && p.life != life {
		p.clear = bootclock.Now() + p.bounds.Claim
	}
	p.life = life
	return stream, nil
}

// leaveTurn gives up the turn if it is ours, so that another replica need not wait until the claim expires. It publishes no
// empty claim while an earlier replica may still be active: the next replica must wait for it, too.
func (p *Elector) leaveTurn(ctx context.Context) error {
	p.claiming.Lock()
	defer p.claiming.Unlock()
	p.mu.Lock()
	ours, claimed, alone := p.pinID != "" && p.until > 0, p.claimed, bootclock.Now() >= p.clear
	p.pinID, p.open = "", false
	p.mu.Unlock()
	if !ours || !p.js.Conn().IsConnected() {
		return nil
	}
	if alone {
		if _, err := p.publishClaim(ctx, "", claimed); err != nil {
			return err
		}
	}
	stream, err := p.claimStream(ctx)
	if err != nil {
		return err
	}
	if err := stream.UnpinConsumer(ctx, p.service, topology.Group); err != nil {
		return fmt.Errorf("unpin: %w", err)
	}
	return nil
}

// renewLoop renews the claim until ctx ends. On a standby it makes sure that some replica takes the turn.
func (p *Elector) renewLoop(ctx context.Context) {
	_, _ = p.claimStream(ctx) // The first life of the stream, to notice a second one.
	next := time.NewTicker(p.bounds.Claim / renewals)
	defer next.Stop()
	seen := standbyWatch{vacant: vacantClaims * p.bounds.Claim}
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		p.mu.Lock()
		turn, pinned, claimed := p.turn, p.pinID != "", p.until > 0
		p.mu.Unlock()
		var err error
		switch {
		case !pinned:
			err = p.standBy(ctx, &seen)
		case claimed:
			err = p.claimTurn(ctx, turn)
		}
		if err != nil {
			p.log.DebugContext(ctx, "turn not seen to", slog.Any("error", err))
		}
	}
}

// vacantClaims bounds the time without a renewed claim before a standby requests the turn, in lifetimes of a claim.
const vacantClaims = 2

// standbyWatch is the newest claim that a standby has seen. since is the time of the first sight, or of the last request.
// looked is the time of the last read. Both are [bootclock.Now].
type standbyWatch struct {
	// vacant is the time for which a claim must be the newest before the first request.
	vacant        time.Duration
	claim         uint64
	since, looked time.Duration
	// asked counts requests for the turn that no claim followed.
	asked int
}

// maxDoublings bounds the growth of the wait between requests: the replica that gets the turn may lack the right to
// claim it.
const maxDoublings = 5

// observeClaim records a claim that a standby read. It reports whether the standby must request the turn now, and records
// the request.
func (s *standbyWatch) observeClaim(claim uint64, now time.Duration) bool {
	if claim != s.claim || s.since == 0 {
		s.claim, s.since, s.asked = claim, now, 0
		return false
	}
	if now-s.since < s.vacant<<min(s.asked, maxDoublings) {
		return false
	}
	s.since, s.asked = now, s.asked+1
	return true
}

// standBy requests the turn if no replica renews a claim. JetStream pins a replica only when it delivers a message. A
// replica that died may have left none, only a key to run again later.
func (p *Elector) standBy(ctx context.Context, seen *standbyWatch) error {
	now := bootclock.Now()
	if now-seen.looked < p.bounds.Claim {
		return nil
	}
	seen.looked = now
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	claim, _, err := p.lastClaim(ctx)
	if err != nil || !seen.observeClaim(claim, now) {
		return err
	}
	if seen.asked == 2 {
		p.log.WarnContext(ctx, "no replica holds the lease; check that the NATS user may publish claims")
	}
	_, err = p.js.Publish(ctx, topology.WakeSubject(p.service), nil)
	return err
}
