// Package nemesis strikes a system: it kills, freezes, cuts and wipes its parts. Its draws depend only on the seed, so
// the same seed gives the same blows. The table of [Blows] lists every blow.
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

// Shape holds the facts about a system that a draw may use.
type Shape struct{ Nodes, Replicas int }

// Target is the system that is struck.
type Target struct {
	System *system.System
	Bus    *checker.Bus
	Driver *workload.Driver
	// Force draws the operation of a user that force-deletes an object and creates it again.
	Force func() workload.Operation
	// Before is called before such an operation.
	Before func(workload.Operation)
	// Tell records a choice that was made at the time of the strike.
	Tell func(text string)

	// handled holds the message counts of the last [Target.Observe].
	handled map[string]float64
}

// Strike is a drawn blow.
type Strike struct {
	// Blow is the name of the blow. Text names the struck parts and the duration.
	Blow, Text string
	// Lasting says that the system must come to rest under it; it is healed after that.
	Lasting bool
	// For is the time until a blow that does not last is healed.
	For time.Duration
	// Do strikes, and returns the function that heals; nil means that there is nothing to heal.
	Do func(ctx context.Context, t *Target) (heal func() error, err error)
}

// Blow is one entry in the table of blows.
type Blow struct {
	Name string
	// Known names the known fault under this blow and its description; empty if every system must survive it.
	Known string
	// Weight is the relative frequency of the blow.
	Weight int
	// Nodes and Replicas are the smallest numbers that the blow needs.
	Nodes, Replicas int
	// Lasting: see [Strike].
	Lasting bool
	draw    func(r *rand.Rand, s Shape) Strike
}

// Blows returns all blows.
func Blows() []Blow {
	return slices.Concat(kills(), freezes(), paths(), streams(), rewinds(), objects())
}

// Safe returns the blows without a known fault.
func Safe() []Blow {
	return slices.DeleteFunc(Blows(), func(b Blow) bool { return b.Known != "" })
}

// Named returns the blows of the given names in the order of the table, and the unknown names.
func Named(names []string) (blows []Blow, unknown []string) {
	for _, b := range Blows() {
		if slices.Contains(names, b.Name) {
			blows = append(blows, b)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(blows, func(b Blow) bool { return b.Name == name }) {
			unknown = append(unknown, name)
		}
	}
	return blows, unknown
}

// Possible returns the blows that a system of this shape can take.
func Possible(blows []Blow, s Shape) []Blow {
	var possible []Blow
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
	shape  Shape
	blows  []Blow
}

// New returns a nemesis that draws from these blows.
func New(random *rand.Rand, shape Shape, blows []Blow) *Nemesis {
	return &Nemesis{random: random, shape: shape, blows: Possible(blows, shape)}
}

// Round draws one to three blows. At most one of them lasts, and then no other may strike NATS or a server: two at once
// might leave nothing that can come to rest.
func (n *Nemesis) Round() []Strike {
	blows := []Blow{n.pick()}
	for range n.random.IntN(3) {
		if b := n.pick(); !slices.ContainsFunc(blows, func(other Blow) bool { return isExcluded(other, b) }) {
			blows = append(blows, b)
		}
	}
	strikes := make([]Strike, len(blows))
	for i, b := range blows {
		strikes[i] = b.draw(n.random, n.shape)
		strikes[i].Blow, strikes[i].Lasting = b.Name, b.Lasting
	}
	return strikes
}

// isExcluded reports whether two blows cannot be in one round. Besides lasting blows, this concerns stripped finalizers
// with a wipe of the streams. If the streams are wiped before any service reads the deletion, no trace of the object is
// left; see docs/design/reliability.md.
func isExcluded(a, b Blow) bool {
	wipes := []string{Wipe, DropStreams, DropStream, Limits, Purge}
	return a.Name == Strip && slices.Contains(wipes, b.Name) || b.Name == Strip && slices.Contains(wipes, a.Name) ||
		a.Lasting && (b.Lasting || strikesNATS(b.Name)) || b.Lasting && strikesNATS(a.Name)
}

// strikesNATS reports whether a blow may take NATS away, or another part that the system needs to come to rest.
func strikesNATS(name string) bool {
	return !slices.Contains([]string{KillServices, Pause, Restart}, name)
}

// pick draws a blow by weight.
func (n *Nemesis) pick() Blow {
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

// between draws a duration.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least))).Round(time.Millisecond)
}
