// Package precedence decides which of several objects owns a name: a definition of a model, or a tuple.
package precedence

import (
	"cmp"
	"strings"
	"time"
)

// Liveness states how much of a claim is live already.
type Liveness int

// The states of a claim, the strongest first.
const (
	// Present means that the object's present text is live.
	Present Liveness = iota
	// Earlier means that an earlier text of the object is live.
	Earlier
	// None means that nothing is live yet.
	None
)

// Claim is what an object's claim to a name rests on.
type Claim struct {
	// Core marks the Store itself, which outranks all others.
	Core bool
	Live Liveness
	// Served marks what the API server itself serves.
	Served bool
	// Created is the time at which the object was made.
	Created time.Time
	// Name breaks ties.
	Name string
}

// Compare orders claims, the strongest first.
func Compare(a, b Claim) int {
	return cmp.Or(
		first(a.Core, b.Core), cmp.Compare(a.Live, b.Live), first(b.Served, a.Served),
		a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name),
	)
}

// first puts true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
