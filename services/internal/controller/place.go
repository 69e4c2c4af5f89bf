package controller

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

// pinHeader identifies the pinned replica in each message. JetStream changes it with every turn.
const pinHeader = "Nats-Pin-Id"

const (
	// renewals is the number of renewals within the lifetime of a claim. renewalTimeout bounds one.
	renewals       = 4
	renewalTimeout = 2 * time.Second
	// doubtful bounds the time that a replica may be unsure of its turn before it reports not ready.
	doubtful = 10 * time.Second
)

// ErrNotActive means that another replica may be active, so this one must write nothing.
var ErrNotActive = errors.New("another replica may be the active one by now")

// Elector decides whether this replica is surely the only active one of its service. JetStream delivers messages to one
// replica at a time, by a pin. A paused replica does not notice when its pin expires or moves to another replica.
//
// So the pinned replica also claims its turn on the stream, by compare-and-swap, and renews the claim. A claim is valid
// for [topology.Takeover].Claim from when it was sent. A replica that claims the turn after another one waits for that
// time, unless the other gave up its turn in order. Every write to a backend checks [Elector.Left] as the last step
// before the request is sent.
type Elector struct {
	js      jetstream.JetStream
	service string
	log     *slog.Logger
	// bounds holds the lifetime of a claim.
	bounds topology.Takeover
	// id is the content of our claims.
	id string
	// claiming is held while a claim is published.
	claiming sync.Mutex

	mu    sync.Mutex
	pinID string
	// turn counts the turns that began here. A lost turn may begin again with the same pin.
	turn uint64
	// began is the time at which the turn began, by [bootclock.Now].
	began time.Duration
	// open means that the replica before has stopped, and that our view holds everything that it knew.
	open bool
	// opened is the sequence of the claim with which the turn opened.
	opened uint64
	// until is the time at which our claim expires, by [bootclock.Now].
	until time.Duration
	// claimed is the sequence of our last claim.
	claimed uint64
	// life is the creation time of the stream when it was last read.
	life string
	// clear is the time at which the claims of all replicas before us have expired.
	clear time.Duration
}

// NewPlace returns a place without a turn.
func NewPlace(js jetstream.JetStream, service string, bounds topology.Takeover, log *slog.Logger) *Elector {
	host, _ := os.Hostname() // For people only.
	return &Elector{js: js, service: service, bounds: bounds, log: log, id: strings.TrimPrefix(host+"-"+nuid.Next(), "-")}
}

// Replica returns the id of this replica. It differs after a restart.
func (p *Elector) Replica() string { return p.id }

// Left returns the time for which the turn is surely ours, or [ErrNotActive].
func (p *Elector) Left() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := p.until - bootclock.Now(); left > 0 && p.open {
		return left, nil
	}
	return 0, ErrNotActive
}

// Err returns an error if this replica is pinned, but could not open or renew its turn for the time doubtful. It then
// delays all work of the service.
func (p *Elector) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.began
	if p.open {
		since = p.until
	}
	if d := bootclock.Since(since); p.pinID != "" && d > doubtful {
		return fmt.Errorf("not sure of its turn for %s", d.Round(time.Second))
	}
	return nil
}

// isSure reports whether the turn is surely ours.
func (p *Elector) isSure() bool {
	_, err := p.Left()
	return err == nil
}

// currentTurn returns the present turn, and reports whether this replica is pinned.
func (p *Elector) currentTurn() (turn uint64, ours bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn, p.pinID != ""
}

// isOurs reports whether this replica is pinned. Its claim may have expired.
func (p *Elector) isOurs() bool {
	_, ours := p.currentTurn()
	return ours
}

// isCurrent reports whether a turn is the present one.
func (p *Elector) isCurrent(turn uint64) bool {
	now, ours := p.currentTurn()
	return ours && now == turn
}

// beginsTurn reads the pin of a message, and reports whether a new turn begins with it.
func (p *Elector) beginsTurn(msg jetstream.Msg) (turn uint64, another bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pin := msg.Headers().Get(pinHeader)
	if another = pin != p.pinID; another {
		p.pinID, p.began, p.until, p.open = pin, bootclock.Now(), 0, false
		p.turn++
	}
	return p.turn, another
}

// openTurn marks a turn as open, and reports whether it was still the present one.
func (p *Elector) openTurn(turn uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pinID == "" || p.turn != turn {
		return false
	}
	p.open, p.opened = true, p.claimed
	return true
}

// hasClaimedBefore reports whether our turn is open, and its claim precedes a sequence of the stream.
func (p *Elector) hasClaimedBefore(sequence uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open && p.opened < sequence
}

// loseTurn ends a turn.
func (p *Elector) loseTurn(turn uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn == turn {
		p.pinID, p.open = "", false
	}
}

// awaitPredecessors waits until the claims of all replicas before us have expired.
func (p *Elector) awaitPredecessors(ctx context.Context) {
	p.mu.Lock()
	left := p.clear - bootclock.Now()
	p.mu.Unlock()
	if left > 0 {
		backoff.Sleep(ctx, left)
	}
}
