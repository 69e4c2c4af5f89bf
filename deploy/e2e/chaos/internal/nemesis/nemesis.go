// Package nemesis strikes a system: it kills, freezes, cuts and wipes. What it draws depends on the
// seed alone, so that the same seed is the same blows. Each sort of blow is in the table of [Blows].
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

// Shape is what a blow may know when it is drawn.
type Shape struct{ Nodes, Replicas int }

// Target is what is struck.
type Target struct {
	System *system.System
	Bus    *checker.Bus
	Driver *workload.Driver
	// Force draws what a person does who force-deletes an object and makes it anew.
	Force func() workload.Operation
	// Before hears of such an operation.
	Before func(workload.Operation)
	// Tell writes down what was chosen when a blow fell.
	Tell func(text string)

	// handled is what each replica had done when that was last observed.
	handled map[string]float64
}

// Strike is one blow, drawn.
type Strike struct {
	// Blow is its name, Text what exactly is struck, and for how long.
	Blow, Text string
	// Lasting says that the system must come to rest under it; it is healed after that.
	Lasting bool
	// For is how long a blow that does not last is there before it is healed.
	For time.Duration
	// Do strikes, and returns what heals.
	Do func(ctx context.Context, t *Target) (heal func() error, err error)
}

// Blow is one sort of them.
type Blow struct {
	Name string
	// Known says what is known not to survive it yet, and where that is described; empty for what
	// every system must survive.
	Known string
	// Weight is how often it is drawn, beside others.
	Weight int
	// Nodes and Replicas are how many it takes at least.
	Nodes, Replicas int
	// Lasting: see [Strike].
	Lasting bool
	draw    func(r *rand.Rand, s Shape) Strike
}

// Blows lists all sorts.
func Blows() []Blow {
	return slices.Concat(kills(), freezes(), paths(), streams(), objects())
}

// Safe are those that are known to be survived.
func Safe() []Blow {
	return slices.DeleteFunc(Blows(), func(b Blow) bool { return b.Known != "" })
}

// Named are those of the given names, in the order of the table; unknown names are returned.
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

// Possible are those that a system of a shape can be struck by.
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

// New draws from these blows.
func New(random *rand.Rand, shape Shape, blows []Blow) *Nemesis {
	return &Nemesis{random: random, shape: shape, blows: Possible(blows, shape)}
}

// Round draws the blows of one round: a few, of which one at most lasts, and then no other strikes
// NATS: two at a time may leave nothing that could come to rest.
func (n *Nemesis) Round() []Strike {
	blows := []Blow{n.pick()}
	for range n.random.IntN(3) {
		if b := n.pick(); !slices.ContainsFunc(blows, func(other Blow) bool { return excluded(other, b) }) {
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

// excluded reports whether two blows cannot be in one round. One pair never is: finalizers are taken
// away, and the bus is wiped before anybody has read that. Then nothing is left anywhere that could
// tell of the object; docs/reliability.md says so.
func excluded(a, b Blow) bool {
	wipes := []string{Wipe, DropStreams, DropStream, Limits}
	return a.Name == Strip && slices.Contains(wipes, b.Name) || b.Name == Strip && slices.Contains(wipes, a.Name) ||
		a.Lasting && (b.Lasting || strikesNATS(b.Name)) || b.Lasting && strikesNATS(a.Name)
}

// strikesNATS reports whether a blow may take NATS away, or what the system needs to come to rest.
func strikesNATS(name string) bool {
	return !slices.Contains([]string{KillServices, Pause, Restart}, name)
}

// pick draws a sort by its weight.
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

// between draws a time.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least))).Round(time.Millisecond)
}
