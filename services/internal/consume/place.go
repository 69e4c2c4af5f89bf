package consume

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

// pinHeader tells a replica that it is the active one; it changes with every turn.
const pinHeader = "Nats-Pin-Id"

const (
	// renewals is how often a replica renews a claim within its time; renewalTimeout bounds one try.
	renewals       = 4
	renewalTimeout = 2 * time.Second
	// doubtful is for how long a replica may not be sure of its turn before it is not ready.
	doubtful = 10 * time.Second
)

// ErrNotActive means that this replica may not be the active one of its service any more, so
// that it must change nothing.
var ErrNotActive = errors.New("another replica may be the active one by now")

// Place is that of the active replica of a service. JetStream sends messages to one replica at a
// time, by a pin; how sure a replica may be that it is the only one at work is decided here alone.
//
// A pin tells nothing to who stands still: when it runs out, and at every change of the leader,
// another gets it. So the turn that a pin begins is claimed on the bus, by compare-and-swap, and
// the claim renewed. A claim holds for the time of its bounds from when it was sent; whoever claims
// the turn after another waits for that time, unless that one has left in order. Every change of a
// backend asks [Place.Left] as the last thing before the request leaves.
type Place struct {
	js      jetstream.JetStream
	service string
	log     *slog.Logger
	// bounds holds how long a claim lasts.
	bounds topology.Takeover
	// id is in our claims.
	id string
	// claiming is held while a claim is made.
	claiming sync.Mutex

	mu  sync.Mutex
	pin string
	// turn counts the turns that have begun here: one that is lost may begin again with the same pin.
	turn uint64
	// began is when the turn did, by [bootclock.Now].
	began time.Duration
	// open means that the replica before us has stopped, and that ours knows all that it knew.
	open bool
	// opened is the sequence of the claim that it opened with.
	opened uint64
	// until is when the place may be another's, by [bootclock.Now].
	until time.Duration
	// claimed is the sequence of our last claim.
	claimed uint64
	// life is that of the stream that was seen last.
	life string
	// clear is when nobody whom we have claimed a turn after can be sure any more.
	clear time.Duration
}

// NewPlace makes one that nobody has yet.
func NewPlace(js jetstream.JetStream, service string, bounds topology.Takeover, log *slog.Logger) *Place {
	host, _ := os.Hostname() // For people.
	return &Place{js: js, service: service, bounds: bounds, log: log, id: strings.TrimPrefix(host+"-"+nuid.Next(), "-")}
}

// Replica tells this one from others, those of the same name before it included.
func (p *Place) Replica() string { return p.id }

// Left is for how long at least the place is ours; [ErrNotActive] when that is not sure.
func (p *Place) Left() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := p.until - bootclock.Now(); left > 0 && p.open {
		return left, nil
	}
	return 0, ErrNotActive
}

// Err is nil while a turn is another's, is ours, or has been in doubt for a moment: whoever was sent
// messages and cannot begin, or claim its turn again, holds up all that the service is to do.
func (p *Place) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.began
	if p.open {
		since = p.until
	}
	if d := bootclock.Since(since); p.pin != "" && d > doubtful {
		return fmt.Errorf("not sure of its turn for %s", d.Round(time.Second))
	}
	return nil
}

// sure reports whether the place is surely ours.
func (p *Place) sure() bool {
	_, err := p.Left()
	return err == nil
}

// current is the turn of now, and whether the place is ours for all that is known, sure or not.
func (p *Place) current() (turn uint64, ours bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn, p.pin != ""
}

// ours reports whether the place is ours for all that is known, sure or not.
func (p *Place) ours() bool {
	_, ours := p.current()
	return ours
}

// has reports whether a turn is that of now.
func (p *Place) has(turn uint64) bool {
	now, ours := p.current()
	return ours && now == turn
}

// begins takes the pin of a message, and reports whether a new turn begins with it.
func (p *Place) begins(msg jetstream.Msg) (turn uint64, another bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pin := msg.Headers().Get(pinHeader)
	if another = pin != p.pin; another {
		p.pin, p.began, p.until, p.open = pin, bootclock.Now(), 0, false
		p.turn++
	}
	return p.turn, another
}

// opens lets a turn begin, unless it is over.
func (p *Place) opens(turn uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pin == "" || p.turn != turn {
		return false
	}
	p.open, p.opened = true, p.claimed
	return true
}

// claimedBefore reports whether a turn of ours is open, and was claimed before a message was on the stream.
func (p *Place) claimedBefore(sequence uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open && p.opened < sequence
}

// lose ends a turn.
func (p *Place) lose(turn uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn == turn {
		p.pin, p.open = "", false
	}
}

// await waits until nobody whom we have claimed a turn after can be sure any more.
func (p *Place) await(ctx context.Context) {
	p.mu.Lock()
	left := p.clear - bootclock.Now()
	p.mu.Unlock()
	if left > 0 {
		backoff.Sleep(ctx, left)
	}
}
