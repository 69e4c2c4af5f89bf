// Package nemesis strikes a system: it kills, freezes, cuts and wipes its parts. Its draws depend only on the seed, so
// the same seed gives the same blows. The table of [AllFaults] lists every blow.
package nemesis

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/checker"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// SystemShape holds the facts about a system that a draw may use.
type SystemShape struct{ Nodes, Replicas int }

// FaultTarget is the system that is struck.
type FaultTarget struct {
	System *system.System
	Bus    *checker.Bus
	Driver *workload.Driver
	// Force draws the operation of a user that force-deletes an object and creates it again.
	Force func() workload.Operation
	// Before is called before such an operation.
	Before func(workload.Operation)
	// Tell records a choice that was made at the time of the strike.
	Tell func(text string)

	// handled holds the message counts of the last [FaultTarget.RecordHandledCounts].
	handled map[string]float64
}

// FaultInjection is a drawn blow.
type FaultInjection struct {
	// Blow is the name of the blow. Text names the struck parts and the duration.
	Blow, Text string
	// Lasting says that the system must come to rest under it; it is healed after that.
	Lasting bool
	// For is the time until a blow that does not last is healed.
	For time.Duration
	// Do strikes, and returns the function that heals; nil means that there is nothing to heal.
	Do func(ctx context.Context, t *FaultTarget) (heal func() error, err error)
}

// Fault is one entry in the table of blows.
type Fault struct {
	Name string
	// Known names the known fault under this blow and its description; empty if every system must survive it.
	Known string
	// Weight is the relative frequency of the blow.
	Weight int
	// Nodes and Replicas are the smallest numbers that the blow needs.
	Nodes, Replicas int
	// Lasting: see [FaultInjection].
	Lasting bool
	draw    func(r *rand.Rand, s SystemShape) FaultInjection
}

// AllFaults returns all blows.
func AllFaults() []Fault {
	return slices.Concat(killFaults(), freezeFaults(), pathFaults(), streamFaults(), rewindFaults(), objectFaults())
}

// SurvivedFaults returns the blows without a known fault.
func SurvivedFaults() []Fault {
	return slices.DeleteFunc(AllFaults(), func(b Fault) bool { return b.Known != "" })
}

// FaultsByName returns the blows of the given names in the order of the table, and the unknown names.
func FaultsByName(names []string) (blows []Fault, unknown []string) {
	for _, b := range AllFaults() {
		if slices.Contains(names, b.Name) {
			blows = append(blows, b)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(blows, func(b Fault) bool { return b.Name == name }) {
			unknown = append(unknown, name)
		}
	}
	return blows, unknown
}

// FaultsPossibleFor returns the blows that a system of this shape can take.
func FaultsPossibleFor(blows []Fault, s SystemShape) []Fault {
	var possible []Fault
	for _, b := range blows {
		if b.Nodes <= s.Nodes && b.Replicas <= s.Replicas {
			possible = append(possible, b)
		}
	}
	return possible
}

// Nemesis draws blows.
type Nemesis struct {
	random *rand.Rand
	shape  SystemShape
	blows  []Fault
	// opening holds the first blows of the next rounds.
	opening []Fault
}

// New returns a nemesis that draws from these blows.
func New(random *rand.Rand, shape SystemShape, blows []Fault) *Nemesis {
	return &Nemesis{random: random, shape: shape, blows: FaultsPossibleFor(blows, shape)}
}

// BeginWith makes the next rounds begin with these blows, one each. Later rounds draw all their blows.
func (n *Nemesis) BeginWith(blows []Fault) { n.opening = slices.Clone(blows) }

// DrawRound draws one to three blows. At most one of them lasts, and then no other may strike NATS or a server: two at once
// might leave nothing that can come to rest.
func (n *Nemesis) DrawRound() []FaultInjection {
	blows := []Fault{n.drawFirstFault()}
	for range n.random.IntN(3) {
		if b := n.drawFault(); !slices.ContainsFunc(blows, func(other Fault) bool { return isExcluded(other, b) }) {
			blows = append(blows, b)
		}
	}
	strikes := make([]FaultInjection, len(blows))
	for i, b := range blows {
		strikes[i] = b.draw(n.random, n.shape)
		strikes[i].Blow, strikes[i].Lasting = b.Name, b.Lasting
	}
	return strikes
}

// isExcluded reports whether two blows cannot be in one round. Besides lasting blows, this concerns stripped finalizers
// with a wipe of the streams. If the streams are wiped before any service reads the deletion, no trace of the object is
// left; see docs/design/reliability.md. It also concerns blows that could start NATS while its data is replaced.
func isExcluded(a, b Fault) bool {
	wipes := []string{Wipe, DropStreams, DropStream, Limits, Purge, LoseTail}
	return a.Name == Strip && slices.Contains(wipes, b.Name) || b.Name == Strip && slices.Contains(wipes, a.Name) ||
		a.Name == LoseTail && mayStartNATS(b.Name) || b.Name == LoseTail && mayStartNATS(a.Name) ||
		a.Lasting && (b.Lasting || mayStrikeNATS(b.Name)) || b.Lasting && mayStrikeNATS(a.Name)
}

// mayStartNATS reports whether a blow may start a NATS server.
func mayStartNATS(name string) bool {
	return slices.Contains([]string{KillServers, Wipe, WipeNode, LoseTail}, name)
}

// mayStrikeNATS reports whether a blow may take NATS away, or another part that the system needs to come to rest.
func mayStrikeNATS(name string) bool {
	return !slices.Contains([]string{KillServices, Pause, Restart}, name)
}

// drawFirstFault returns the next opening blow, or draws one.
func (n *Nemesis) drawFirstFault() Fault {
	if len(n.opening) == 0 {
		return n.drawFault()
	}
	first := n.opening[0]
	n.opening = n.opening[1:]
	return first
}

// drawFault draws a blow by weight.
func (n *Nemesis) drawFault() Fault {
	total := 0
	for _, b := range n.blows {
		total += b.Weight
	}
	at := n.random.IntN(total)
	for _, b := range n.blows {
		if at -= b.Weight; at < 0 {
			return b
		}
	}
	return n.blows[0]
}

// drawDuration draws a duration.
func drawDuration(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least))).Round(time.Millisecond)
}
